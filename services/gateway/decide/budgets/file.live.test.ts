import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { verifyLedger } from '@plat/ledger'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { wholeLines } from '@plat/testkit/ledger'
import { type ModelServer, startModelServer } from '@plat/testkit/model-server'
import { until } from '@plat/testkit/until'
import { ask, HOLD, INPUT, MAX_TOKENS, PRICES } from './testing.ts'

const ADMIN = 'the-admin-token-of-this-test-1234567890'
const DAY = 'Agent/default/assistant/day'
const MONTH = 'BudgetPolicy/default/everybody/month'

let upstream: ModelServer
let dir = ''
const running: GatewayProcess[] = []

beforeEach(async () => {
  upstream = await startModelServer()
  // Each call costs exactly its hold, which keeps sums simple.
  upstream.answers({ text: ['Hello'], usage: { prompt: INPUT, completion: MAX_TOKENS } })
  dir = await mkdtemp(join(tmpdir(), 'plat-'))
  await writeFile(join(dir, 'prices.json'), JSON.stringify(PRICES))
})
afterEach(async () => {
  for (const gateway of running.splice(0)) await gateway.close()
  await upstream.close()
  await rm(dir, { recursive: true })
})

/** Writes the file atomically, as the operator renders it. */
async function budgets(calls: { readonly day?: number; readonly month: number }): Promise<void> {
  const all = { alerts: [50, 100] }
  const day = {
    ...all,
    id: DAY,
    source: 'Agent/default/assistant',
    match: { namespaces: ['default'], agents: ['assistant'] },
    window: 'day',
    capMicros: (calls.day ?? 0) * HOLD,
  }
  const month = {
    ...all,
    id: MONTH,
    source: 'BudgetPolicy/default/everybody',
    match: {},
    window: 'month',
    capMicros: calls.month * HOLD,
  }
  const file = { version: 1, currency: 'USD', budgets: calls.day === undefined ? [month] : [day, month] }
  await writeFile(join(dir, 'budgets.tmp'), JSON.stringify(file))
  await rename(join(dir, 'budgets.tmp'), join(dir, 'budgets.json'))
}

/** The same valid totals with the position of another ledger. */
function ofAnotherLedger(text: string): string {
  const end = text.lastIndexOf(',"sha256":"')
  const body = text.slice(0, end).replace(/"hash":"[0-9a-f]{8}/, '"hash":"00000000')
  return `${body},"sha256":"${hash('sha256', body)}"}`
}

async function start(config: object = {}): Promise<GatewayProcess> {
  const gateway = await startGatewayProcess({
    servers: {},
    scopes: ['models:small'],
    env: { PLAT_ADMIN_TOKEN: ADMIN },
    config: {
      models: { small: { upstream: upstream.url } },
      budgetsFile: join(dir, 'budgets.json'),
      pricingFile: join(dir, 'prices.json'),
      auditPath: join(dir, 'audit.jsonl'),
      policyReloadSeconds: 1,
      finopsSaveSeconds: 1,
      budgetTimezone: zoneOfNoon(),
      ...config,
    },
  })
  running.push(gateway)
  return gateway
}

/** A zone where it is about noon, so that no window ends during the test. */
function zoneOfNoon(): string {
  const hours = 12 - new Date().getUTCHours()
  // POSIX sign convention: ahead of UTC is negative.
  return `Etc/GMT${hours > 0 ? '-' : '+'}${Math.abs(hours)}`
}

/** Returns null if the call passed. */
async function refusal(gateway: GatewayProcess) {
  const headers = { authorization: `Bearer ${gateway.token}`, 'content-type': 'application/json' }
  const url = `${gateway.url}/llm/small/v1/chat/completions`
  const response = await fetch(url, { method: 'POST', headers, body: ask })
  const body: { readonly error?: { readonly code: string; readonly message: string } } = JSON.parse(
    await response.text(),
  )
  const { status } = response
  return body.error === undefined
    ? null
    : {
        status,
        ...body.error,
        retryAfter: response.headers.get('retry-after'),
        retry: response.headers.get('x-should-retry'),
      }
}

async function records(): Promise<readonly Readonly<Record<string, unknown>>[]> {
  return wholeLines(join(dir, 'audit.jsonl')).map((line) => JSON.parse(line).rec)
}

const alerts = async () =>
  (await records())
    .filter(({ alert }) => alert === 'budget.threshold')
    .map(({ budget, percent, spent }) => `${budget} ${percent} ${Number(spent) / HOLD}`)

async function listed(gateway: GatewayProcess) {
  const response = await fetch(`${gateway.url}/v1/budgets`, { headers: { authorization: `Bearer ${ADMIN}` } })
  assert.equal(response.status, 200)
  const { items, nextCursor } = JSON.parse(await response.text())
  assert.equal(nextCursor, null)
  return items
}

const spentOf = async (gateway: GatewayProcess) =>
  Object.fromEntries(
    (await listed(gateway)).map((item: { id: string; spent: { micros: number } }) => [
      item.id,
      item.spent.micros / HOLD,
    ]),
  )

test('budgets of a file limit calls, are listed and reloaded, and alerts are sent once', async () => {
  // Shows D3.cost.budgetsFile, D3.event.budgetThreshold, D3.metric.plat_gateway_budget_alerts_total.
  // Shows D2.budget.perDayUSD.
  await budgets({ day: 2, month: 100 })
  const gateway = await start()
  assert.deepEqual([await refusal(gateway), await refusal(gateway)], [null, null])
  await until(async () => (await spentOf(gateway))[DAY] === 2, 'both calls settled')
  const refused = await refusal(gateway)
  assert.deepEqual([refused?.status, refused?.code, refused?.retry], [429, 'budget_exceeded', 'false'])
  assert.match(refused?.message ?? '', new RegExp(`0\\.000000 USD left of the budget ${DAY}; it resets at `))
  const seconds = Number(refused?.retryAfter)
  assert.ok(seconds > 0 && seconds <= 86_400)
  const [month, day] = await listed(gateway)
  assert.deepEqual(
    [month.id, day.id, day.scope, day.window, day.source],
    [MONTH, DAY, 'agent', 'day', 'Agent/default/assistant'],
  )
  assert.deepEqual(
    [day.cap, day.spent, day.held, day.left, day.alerts],
    [
      { micros: 2 * HOLD, currency: 'USD' },
      { micros: 2 * HOLD, currency: 'USD' },
      { micros: 0, currency: 'USD' },
      { micros: 0, currency: 'USD' },
      [50, 100],
    ],
  )
  assert.ok(Date.parse(day.resetsAt) > Date.now() && day.period.length === 10 && month.period.length === 7)
  await until(async () => (await alerts()).length === 2, 'both alerts')
  assert.deepEqual(await alerts(), [`${DAY} 50 1`, `${DAY} 100 2`])
  const metricsText = async () => (await fetch(`${gateway.url}/metrics`)).text()
  const counted = /plat_gateway_budget_alerts_total\{scope="agent",percent="100"\} 1/
  await until(async () => counted.test(await metricsText()), 'the metric of the alert')
  const metrics = await metricsText()
  assert.match(metrics, /plat_gateway_budget_denied_total\{scope="agent"\} 1/)
  await budgets({ day: 3, month: 100 })
  await until(async () => (await refusal(gateway)) === null, 'the raised cap')
  await budgets({ day: 1, month: 100 })
  await until(async () => (await refusal(gateway))?.code === 'budget_exceeded', 'the lowered cap')
  await budgets({ month: 100 })
  await until(async () => (await refusal(gateway)) === null, 'the removed budget')
})

test('spending and sent alerts survive a stop, a kill -9, and wrong, lost or foreign totals', async () => {
  // Shows D3.cost.finopsStatePath and D3.default.computed.finopsStatePath.
  await budgets({ day: 100, month: 10 })
  const state = join(dir, 'audit.jsonl.finops.json')
  let calls = 0
  /** One more call, then the end. */
  const session = async (end: (gateway: GatewayProcess) => Promise<void>, config: object = {}) => {
    const gateway = await start(config)
    assert.deepEqual(await spentOf(gateway), { [DAY]: calls, [MONTH]: calls })
    assert.equal(await refusal(gateway), null)
    calls++
    await until(async () => (await spentOf(gateway))[MONTH] === calls, 'the call settled')
    await end(gateway)
  }
  const stop = (gateway: GatewayProcess) => gateway.close()
  const kill = (gateway: GatewayProcess) => gateway.kill()
  await session(stop)
  const first = JSON.parse(await readFile(state, 'utf8'))
  assert.equal(first.totalMicros, HOLD)
  const old = await readFile(state)
  await session(kill)
  await writeFile(state, JSON.stringify({ ...first, totalMicros: 1 }))
  await session(kill)
  await writeFile(state, old)
  await session(stop)
  await rm(state)
  await session(kill)
  await writeFile(state, ofAnotherLedger(old.toString()))
  await session(stop)
  const elsewhere = join(dir, 'elsewhere.json')
  await session(stop, { finopsStatePath: elsewhere })
  assert.equal(JSON.parse(await readFile(elsewhere, 'utf8')).totalMicros, calls * HOLD)
  assert.deepEqual(await alerts(), [`${MONTH} 50 5`])
  // Thresholds that are already reached at start send alerts without another call.
  await budgets({ day: calls, month: 10 })
  await (await start()).close()
  assert.deepEqual((await alerts()).slice(1), [`${DAY} 50 ${calls}`, `${DAY} 100 ${calls}`])
  assert.equal((await verifyLedger(join(dir, 'audit.jsonl'))).verdict, 'valid')
})

test('calls with a cost are refused until budgets can be loaded', async () => {
  // Shows D3.error.budgetCurrency.
  const gateway = await start({ budgetCurrency: 'EUR', pricingFile: '' })
  assert.equal((await refusal(gateway))?.code, 'state_unavailable')
  await budgets({ month: 100 })
  await until(
    () => gateway.complaints().some((line) => line.includes('the gateway counts in EUR')),
    'the refusal of the file',
  )
  assert.equal((await refusal(gateway))?.code, 'state_unavailable')
  const text = await readFile(join(dir, 'budgets.json'), 'utf8')
  await writeFile(join(dir, 'budgets.json'), text.replace('USD', 'EUR'))
  await until(async () => (await refusal(gateway))?.code === 'price_unknown', 'the budgets read')
  await writeFile(join(dir, 'budgets.json'), JSON.stringify({ version: 1, currency: 'EUR', budgets: [] }))
  await until(async () => (await refusal(gateway)) === null, 'no budgets')
})

test('tokens per minute are held on a route with that limit', async () => {
  // Shows D3.metric.plat_gateway_rate_limited_total.
  await budgets({ month: 100 })
  const models = { small: { upstream: upstream.url, tokensPerMinute: INPUT + MAX_TOKENS } }
  const gateway = await start({ models })
  // If the minute ends in between, the second call is the first of the next one.
  await until(async () => {
    const answers = [await refusal(gateway), await refusal(gateway)]
    const limited = answers.find((answer) => answer !== null)
    if (limited === undefined) return false
    assert.deepEqual([limited?.status, limited?.code, limited?.retry], [429, 'rate_limited', null])
    assert.ok(Number(limited?.retryAfter) >= 1 && Number(limited?.retryAfter) <= 60)
    return true
  }, 'a minute that is used up')
  const metrics = await (await fetch(`${gateway.url}/metrics`)).text()
  assert.match(metrics, /plat_gateway_rate_limited_total [12]/)
})

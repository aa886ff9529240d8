import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { verifyLedger } from '@plat/ledger'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { wholeLines } from '@plat/testkit/ledger'
import { type ModelServer, startModelServer } from '@plat/testkit/model-server'
import { until } from '@plat/testkit/until'
import { ask, HOLD, INPUT, MAX_TOKENS, PRICES } from './testing.ts'

let upstream: ModelServer
let dir = ''

beforeEach(async () => {
  upstream = await startModelServer()
  dir = await mkdtemp(join(tmpdir(), 'plat-'))
  await writeFile(join(dir, 'prices.json'), JSON.stringify(PRICES))
})
afterEach(async () => {
  await upstream.close()
  await rm(dir, { recursive: true })
})

/** A gateway on the ledger of this test with this session budget in micro-units. */
const start = (capMicros: number, more: object = {}) =>
  startGatewayProcess({
    servers: {},
    scopes: ['models:small'],
    config: {
      models: { small: { upstream: upstream.url } },
      sessionBudgetUSD: capMicros / 1e6,
      pricingFile: join(dir, 'prices.json'),
      auditPath: join(dir, 'audit.jsonl'),
      ...more,
    },
  })

async function complete(gateway: GatewayProcess, body = ask, signal?: AbortSignal) {
  const headers = { authorization: `Bearer ${gateway.token}`, 'content-type': 'application/json' }
  const url = `${gateway.url}/llm/small/v1/chat/completions`
  const response = await fetch(url, { method: 'POST', headers, body, ...(signal === undefined ? {} : { signal }) })
  const text = await response.text()
  const code: string | null = response.ok ? null : JSON.parse(text).error.code
  return { status: response.status, code, cut: response.headers.get('x-plat-max-tokens'), text }
}

/** Records of the ledger so far. */
async function records(): Promise<readonly Readonly<Record<string, unknown>>[]> {
  return wholeLines(join(dir, 'audit.jsonl')).map((line) => JSON.parse(line).rec)
}

/** Waits until every intent has its outcome. Returns the sum of settled amounts. */
async function settled(): Promise<number> {
  let outcomes: Awaited<ReturnType<typeof records>> = []
  await until(async () => {
    const all = await records()
    outcomes = all.filter(({ kind }) => kind === 'outcome')
    return outcomes.length === all.filter(({ kind }) => kind === 'intent').length
  }, 'an outcome for every intent')
  return outcomes.reduce((sum, { settled }) => sum + Object.values(settled ?? {}).reduce(add, 0), 0)
}

const add = (sum: number, amount: number) => sum + amount

/** Returns the micro-units left: requests more output than any budget allows and reads the clamped limit. */
async function left(gateway: GatewayProcess): Promise<number> {
  const greedy = JSON.stringify({ ...JSON.parse(ask), max_tokens: 10_000_000 })
  const { status, cut } = await complete(gateway, greedy)
  assert.equal(status, 200)
  return Number(cut) * 10 + Buffer.byteLength(greedy)
}

/** Equal to the ledger within the rounding to whole tokens. */
function closeTo(actual: number, expected: number): void {
  assert.ok(actual <= expected && actual > expected - 10, `${actual} is left, the ledger says ${expected}`)
}

async function metric(gateway: GatewayProcess, name: string): Promise<number> {
  const text = await (await fetch(`${gateway.url}/metrics`)).text()
  return Number(
    text
      .split('\n')
      .find((line) => line.startsWith(name))
      ?.split(' ')
      .at(-1) ?? 'NaN',
  )
}

test('500 calls at once on a budget that fits 100: exactly 100 are forwarded, and the budget is used to the last micro-unit', async () => {
  // Shows D3.cost.sessionBudgetUSD, D3.metric.plat_gateway_metered_cost_usd, D3.metric.plat_gateway_budget_denied_total.
  const gateway = await start(100 * HOLD)
  try {
    const decided = Promise.withResolvers<void>()
    let refused = 0
    const check = () => upstream.calls.length + refused >= 500 && decided.resolve()
    upstream.answers(() => {
      check()
      return { text: ['Hello'], usage: { prompt: INPUT, completion: MAX_TOKENS }, after: decided.promise }
    })
    const answers = await Promise.all(
      Array.from({ length: 500 }, async () => {
        const answer = await complete(gateway)
        if (answer.status === 429) refused++
        check()
        return answer
      }),
    )
    assert.equal(upstream.calls.length, 100)
    assert.equal(answers.filter(({ status }) => status === 200).length, 100)
    assert.equal(answers.filter(({ code }) => code === 'budget_exceeded').length, 400)
    assert.equal(await settled(), 100 * HOLD)
    assert.equal(await metric(gateway, 'plat_gateway_metered_cost_usd'), (100 * HOLD) / 1e6)
    assert.equal(await metric(gateway, 'plat_gateway_budget_denied_total{scope="session"}'), 400)
    assert.equal((await complete(gateway)).code, 'budget_exceeded')
    const outcome = (await records()).find(({ kind }) => kind === 'outcome')
    assert.deepEqual(
      [outcome?.costMicros, outcome?.currency, outcome?.priceId, outcome?.route, outcome?.model],
      [HOLD, 'USD', 'test', 'small', 'small-1'],
    )
  } finally {
    await gateway.close()
  }
})

test('after aborts and a kill -9 no hold is left: settled calls are spent as settled, others whole', async () => {
  const cap = 1_000_000
  const first = await start(cap)
  const never = new Promise<never>(() => {})
  upstream.answers({ text: ['Hello'], after: never })
  const leaving = new AbortController()
  const aborted = Array.from({ length: 10 }, () => complete(first, ask, leaving.signal).catch(() => 'gone'))
  await upstream.call(10)
  leaving.abort()
  await Promise.all(aborted)
  // No response arrived, so each call costs its prompt.
  assert.equal(await settled(), 10 * INPUT)
  upstream.answers({ text: ['Hello'] })
  closeTo(await left(first), cap - 10 * INPUT)
  const before = await settled()
  upstream.answers({ text: ['Hello'], after: never })
  const killed = Array.from({ length: 7 }, () => complete(first).catch(() => 'gone'))
  await upstream.call(18)
  await first.kill()
  await Promise.all(killed)
  await first.close()
  upstream.answers({ text: ['Hello'] })
  const second = await start(cap)
  try {
    closeTo(await left(second), cap - before - 7 * HOLD)
    assert.equal((await records()).filter(({ result }) => result === 'unknown').length, 7)
    await settled()
  } finally {
    await second.close()
  }
  const third = await start(cap)
  try {
    closeTo(await left(third), cap - (await settledBefore()))
  } finally {
    await third.close()
  }
  assert.equal((await verifyLedger(join(dir, 'audit.jsonl'))).verdict, 'valid')
})

/** Sum settled by all outcomes but the last, which is the probe. */
async function settledBefore(): Promise<number> {
  const whole = await settled()
  const last = (await records()).findLast(({ kind }) => kind === 'outcome')
  return whole - Object.values(last?.settled ?? {}).reduce(add, 0)
}

test('a call is clamped to what is left, in body, header and outcome, also with auditFailurePolicy open', async () => {
  const gateway = await start(INPUT + 640, { auditFailurePolicy: 'open' })
  try {
    const { status, cut } = await complete(gateway)
    assert.deepEqual([status, cut], [200, '64'])
    assert.equal(JSON.parse(upstream.calls[0]?.body ?? '').max_tokens, 64)
    await settled()
    const [intent, outcome] = (await records()).filter(({ kind }) => kind === 'intent' || kind === 'outcome')
    assert.deepEqual([intent?.kind, outcome?.kind, outcome?.maxTokens], ['intent', 'outcome', 64])
  } finally {
    await gateway.close()
  }
})

test('a stream whose upstream dies costs its prompt and the text received, within its hold', async () => {
  const gateway = await start(1_000_000)
  try {
    upstream.answers({ text: Array.from({ length: 40 }, () => ' word'), diesAfter: 3000 })
    const body = JSON.stringify({ ...JSON.parse(ask), stream: true })
    const { text } = await complete(gateway, body)
    assert.match(text, /upstream_error/)
    const spent = await settled()
    const outcome = (await records()).findLast(({ kind }) => kind === 'outcome')
    assert.deepEqual([outcome?.result, outcome?.usageSource, outcome?.costMicros], ['failed', 'estimated', spent])
    const input = Buffer.byteLength(body)
    assert.ok(spent > input && spent <= input + 10 * MAX_TOKENS, `${spent} is not the prompt and a part of the text`)
    upstream.answers({ text: ['Hello'] })
    closeTo(await left(gateway), 1_000_000 - spent)
  } finally {
    await gateway.close()
  }
})

test('under a budget a model without a price is refused, and prices added later are used', async () => {
  // Shows D3.models.pricingFile.
  await rm(join(dir, 'prices.json'))
  const gateway = await start(1_000_000, { policyReloadSeconds: 1 })
  try {
    const refused = await complete(gateway)
    assert.deepEqual([refused.status, refused.code], [403, 'price_unknown'])
    assert.equal(upstream.calls.length, 0)
    await writeFile(join(dir, 'prices.json'), JSON.stringify(PRICES))
    await until(async () => (await complete(gateway)).status === 200, 'the price read')
  } finally {
    await gateway.close()
  }
})

test('two upstreams of one model have their own prices, also where one is a fallback', async () => {
  const other = await startModelServer()
  const rates = (input: string) => ({ input, output: '0' })
  const models = { 'openai/*': rates('1'), [`${other.url}#openai/*`]: rates('3'), 'llm/own#openai/*': rates('5') }
  await writeFile(join(dir, 'prices.json'), JSON.stringify({ ...PRICES, models }))
  const gateway = await startGatewayProcess({
    servers: {},
    scopes: ['models:near', 'models:far', 'models:own', 'models:both'],
    config: {
      models: {
        near: { upstream: upstream.url },
        far: { upstream: other.url },
        own: { upstream: other.url },
        both: { upstream: 'http://127.0.0.1:9/v1', fallbacks: [{ upstream: other.url }] },
      },
      sessionBudgetUSD: 1,
      pricingFile: join(dir, 'prices.json'),
      auditPath: join(dir, 'audit.jsonl'),
    },
  })
  try {
    const headers = { authorization: `Bearer ${gateway.token}`, 'content-type': 'application/json' }
    for (const route of ['near', 'far', 'own', 'both']) {
      const url = `${gateway.url}/llm/${route}/v1/chat/completions`
      const response = await fetch(url, { method: 'POST', headers, body: ask })
      assert.equal(response.status, 200, await response.text())
    }
    await settled()
    const outcomes = (await records()).filter(({ kind }) => kind === 'outcome')
    const costs = outcomes.map(({ costMicros }) => Number(costMicros))
    const unit = costs[0] ?? 0
    assert.ok(unit > 0)
    assert.deepEqual(costs, [unit, 3 * unit, 5 * unit, 3 * unit])
  } finally {
    await Promise.all([gateway.close(), other.close()])
  }
})

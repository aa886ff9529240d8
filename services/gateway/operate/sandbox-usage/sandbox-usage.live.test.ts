import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { wholeLines } from '@plat/testkit/ledger'
import { tempFolder } from '@plat/testkit/local'
import { type ModelServer, startModelServer } from '@plat/testkit/model-server'
import { until } from '@plat/testkit/until'
import { ReviewServer } from './testing/review-server.ts'

const dir = tempFolder()
const auditPath = join(dir, 'audit.jsonl')
const cluster = new ReviewServer()
/** One CPU hour costs 3.6 currency units: one CPU millisecond costs one millionth. */
const PRICES = { version: 1, currency: 'EUR', id: 'p', models: { '*': {} }, sandbox: { cpuHour: '3.6' } }
const CAP = 10_000
let upstream: ModelServer
let gateway: GatewayProcess
let token = ''

before(async () => {
  await cluster.start()
  upstream = await startModelServer()
  upstream.answers({ text: ['Hello'], usage: { prompt: 1, completion: 1 } })
  token = cluster.token('plat:meter')
  const prices = { ...PRICES, models: { 'openai/*': { input: '0', output: '0', perCall: '0.000001' } } }
  await writeFile(join(dir, 'prices.json'), JSON.stringify(prices))
  await writeFile(join(dir, 'kubeconfig'), cluster.kubeconfig)
  gateway = await start()
  assert.equal((await call()).status, 200)
  await until(() => records('outcome').length === 1, 'the record of the call')
})
after(async () => {
  await gateway.close()
  await upstream.close()
  await cluster.stop()
})

const start = () =>
  startGatewayProcess({
    servers: {},
    scopes: ['models:small'],
    config: {
      models: { small: { upstream: upstream.url } },
      pricingFile: join(dir, 'prices.json'),
      sessionBudgetUSD: CAP / 1e6,
      auditPath,
      sandboxUsage: { enabled: true, reporters: ['system:serviceaccount:plat:meter'] },
    },
    env: { KUBECONFIG: join(dir, 'kubeconfig') },
  })

function call(): Promise<Response> {
  return fetch(`${gateway.url}/llm/small/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hi.' }], max_tokens: 64 }),
  })
}

const SESSION = 'default/assistant/s1'
const minute = (at: number) => new Date(Date.now() - 3_600_000 + at * 60_000).toISOString()
const BEGIN = Array.from({ length: 10 }, (_, at) => minute(at))
const report = (at: number, more: object = {}) => ({
  id: `r${at}`,
  session: SESSION,
  from: BEGIN[at],
  to: BEGIN[at + 1],
  cpuMs: 1000,
  memoryByteSeconds: 5,
  ...more,
})

async function send(body: object, bearer: string | null = token) {
  const authorization = bearer === null ? {} : { authorization: `Bearer ${bearer}` }
  const response = await fetch(`${gateway.url}/v1/usage/sandbox`, {
    method: 'POST',
    headers: { ...authorization, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const answer = JSON.parse(await response.text())
  return { status: response.status, answer, challenge: response.headers.get('www-authenticate') }
}

async function refusal(body: object, bearer?: string | null): Promise<string> {
  const { status, answer } = await send(body, bearer)
  return `${status} ${answer.error}: ${answer.message}`
}

function records(kind: string) {
  return wholeLines(auditPath)
    .map((line) => JSON.parse(line).rec)
    .filter((rec) => rec.kind === kind)
}

const reports = () => records('outcome').filter(({ op }) => op === 'usage.sandbox')

async function metered(): Promise<string | undefined> {
  const text = await (await fetch(`${gateway.url}/metrics`)).text()
  return /^plat_gateway_metered_cost_usd\S* (\S+)$/m.exec(text)?.[1]
}

test('a report is charged to the budget of its session and recorded, once however often it is sent', async () => {
  // Shows D3.cost.sandboxUsage.enabled, D3.endpoint.usage.sandbox.
  const cost = { micros: 1000, currency: 'EUR' }
  const sent = await Promise.all([1, 2, 3, 4, 5].map(() => send(report(0))))
  assert.deepEqual(new Set(sent.map(({ status }) => status)), new Set([200]))
  assert.deepEqual(sent.map(({ answer }) => answer.duplicate).toSorted(), [false, true, true, true, true])
  for (const { answer } of sent) assert.deepEqual({ ...answer, duplicate: true }, { ...accepted(0), cost })
  const [rec, more] = reports()
  assert.equal(more, undefined)
  const { sandbox, settled, costMicros, currency, priceId, session, agent, server } = rec
  const key = `usd/session/${SESSION}`
  assert.deepEqual([settled, costMicros, currency, priceId], [{ [key]: 1000 }, 1000, 'EUR', 'p'])
  assert.deepEqual([session, agent, server], ['s1', 'assistant', 'plat-sandbox'])
  assert.deepEqual([sandbox.by, sandbox.report], ['system:serviceaccount:plat:meter', 'r0'])
  assert.deepEqual([sandbox.cpuMs, sandbox.memoryByteSeconds, sandbox.gpuMs], [1000, 5, 0])
  const intent = records('intent').find(({ op }) => op === 'usage.sandbox')
  assert.deepEqual(intent?.holds[0]?.key, key)
  assert.equal(await metered(), '0.001001')
})

const accepted = (at: number) => ({ id: `r${at}`, session: SESSION, duplicate: true })

test('only listed service accounts may report, with tokens that the API server reviews for the audience', async () => {
  // Shows D3.cost.sandboxUsage.reporters, D3.cost.sandboxUsage.audience.
  const before = cluster.reviews
  assert.equal((await send(report(1), null)).challenge, 'Bearer realm="plat-sandbox-usage"')
  assert.match(await refusal(report(1), null), /^401 unauthenticated: /)
  assert.match(await refusal(report(1), gateway.token), /^403 forbidden: .*sandboxUsage.reporters/)
  assert.match(await refusal(report(1), cluster.token('plat:other')), /^403 forbidden: /)
  assert.equal(cluster.reviews, before, 'a token that of no reporter causes no review')
  assert.match(await refusal(report(1), cluster.token('plat:meter', 'other')), /^401 unauthenticated: /)
  assert.match(await refusal(report(1), cluster.forged('plat:meter')), /^401 unauthenticated: /)
  cluster.isAway = true
  assert.match(await refusal(report(1), cluster.token('plat:meter')), /^503 state_unavailable: the API server/)
  cluster.isAway = false
  assert.equal(reports().length, 1)
})

test('impossible values are refused, naming their field', async () => {
  const future = new Date(Date.now() + 60_000).toISOString()
  const other = report(1, { session: 'default/assistant/nobody' })
  assert.match(await refusal(other), /^404 unknown_session: session: .*nobody has not called/)
  assert.match(await refusal(report(1, { to: future })), /^400 invalid_request: to: /)
  assert.match(await refusal(report(1, { to: BEGIN[1] })), /^400 invalid_request: to: must be after from/)
  assert.match(await refusal(report(1, { from: BEGIN[0] })), /^409 conflict: from: overlaps report r0, .* to /)
  assert.match(await refusal(report(1, { id: 'r0' })), /^409 conflict: id: report r0 was sent before with other values/)
  assert.match(await refusal(report(1, { from: '2026-01-01T00:00:00Z' })), /^400 invalid_request: /)
  assert.match(await refusal(report(1, { cpuMs: -1 })), /^400 invalid_request: cpuMs/)
  assert.match(await refusal(report(1, { cpuSeconds: 1 })), /^400 invalid_request: /)
  assert.match(await refusal(report(1, { session: 's' })), /^400 invalid_request: session/)
  assert.equal(reports().length, 1)
})

test('after a kill -9 an accepted report is remembered, and its cost is spent', async () => {
  assert.equal((await send(report(1))).answer.duplicate, false)
  await gateway.kill()
  await gateway.close()
  gateway = await start()
  assert.equal((await send(report(1))).answer.duplicate, true)
  assert.match(await refusal(report(2, { from: BEGIN[1] })), /^409 conflict: from: overlaps report r1/)
  assert.equal(reports().length, 2)
  assert.equal(await metered(), '0.002001')
})

test('usage counts beyond the cap, and the next call of the session is refused', async () => {
  assert.equal((await call()).status, 200)
  assert.equal((await send(report(3, { cpuMs: 2 * CAP }))).status, 200)
  const refused = await call()
  assert.equal(refused.status, 429)
  assert.equal(JSON.parse(await refused.text()).error.code, 'budget_exceeded')
  assert.deepEqual(gateway.complaints(), [])
})

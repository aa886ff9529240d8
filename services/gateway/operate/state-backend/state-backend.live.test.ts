import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, test } from 'node:test'
import type { GatewayProcess } from '@plat/testkit/gateway'
import { tempFolder } from '@plat/testkit/local'
import { TestGateways } from '@plat/testkit/postgres/gateways'
import { usePostgres } from '@plat/testkit/postgres/server'
import { until } from '@plat/testkit/until'

const MAX_CONNECTIONS = 3
/** Longer than any test, in seconds. */
const A_LONG_WINDOW = 100_000_000

/** Resolves to release calls with the argument `stuck`. */
const released = Promise.withResolvers<void>()
const postgres = usePostgres()
const budgetsFile = join(tempFolder(), 'budgets.json')
const template = {
  ...{ id: 'BudgetPolicy/default/all/session/day', source: 'BudgetPolicy/default/all', match: {}, window: 'day' },
  ...{ per: 'session', names: ['each-*'], capMicros: 30_000, except: [{ names: ['each-more'], amount: 40_000 }] },
}
const budgets = { version: 1, currency: 'EUR', budgets: [{ ...template, alerts: [] }] }
await writeFile(budgetsFile, JSON.stringify(budgets))
const shared = new TestGateways({
  postgres,
  rules: [
    { name: 'asked', action: 'require_approval', match: { tools: ['asked'] }, reason: 'somebody looks first' },
    {
      name: 'slow',
      action: 'allow',
      match: { tools: ['rated'] },
      rateLimit: { count: 5, seconds: A_LONG_WINDOW, per: 'session' },
    },
    { name: 'all', action: 'allow' },
  ],
  prices: { version: 1, currency: 'EUR', id: 'p', tools: { 'default/notes/paid': { perCall: '0.01' } } },
  config: { sessionBudgetUSD: 1, budgetsFile },
  stateBackend: { schema: 'replicas', maxConns: MAX_CONNECTIONS, leader: { retryMillis: 200 } },
  onCall: ({ stuck }) => stuck === true && released.promise,
})
let one: GatewayProcess
let other: GatewayProcess
before(async () => {
  ;[one, other] = await Promise.all([shared.start(), shared.start()])
  postgres.beforeClose(released.resolve)
})

async function spentIn(gateway: GatewayProcess, session: string) {
  const { body } = await shared.admin(gateway, 'GET', '/budgets?limit=500')
  const found = body.items.find(({ period }: { period: string }) => period === `default/assistant/${session}`)
  return { spent: found?.spent.micros ?? 0, held: found?.held.micros ?? 0 }
}

test('a revocation at one gateway applies at the other, until it is lifted there', async () => {
  // Shows D3.state.stateBackend.type.postgres.
  // Shows D3.state.stateBackend.type, D3.state.stateBackend.dsnFile.
  assert.equal(await shared.refusal(other, 'gone', 'free'), null)
  const revoked = await shared.admin(one, 'POST', '/revocations', { target: { session: 'default/assistant/gone' } })
  assert.equal(revoked.status, 201)
  await until(async () => (await shared.refusal(other, 'gone', 'free')) !== null, 'the revocation')
  assert.equal((await shared.call(other, 'gone', 'free')).status, 401)
  assert.equal(await shared.refusal(other, 'stays', 'free'), null)
  assert.equal((await shared.admin(other, 'DELETE', `/revocations/${revoked.body.id}`)).status, 204)
  await until(async () => (await shared.refusal(one, 'gone', 'free')) === null, 'the lift')
})

test('a call pending at one gateway can be approved at the other, and the grant is used once', async () => {
  const held = shared.call(one, 'asks', 'asked', { n: 1 })
  const pending = async () => (await shared.admin(other, 'GET', '/approvals?state=pending')).body.items
  await until(async () => (await pending()).length === 1, 'the approval')
  const [{ id }] = await pending()
  assert.equal((await shared.admin(other, 'POST', `/approvals/${id}/approve`, {})).status, 200)
  assert.deepEqual((await held).result, { content: [{ type: 'text', text: 'done' }] })
  assert.equal((await shared.admin(other, 'POST', `/approvals/${id}/approve`, {})).status, 409)
  const stateOf = async () => (await shared.admin(other, 'GET', `/approvals/${id}`)).body.state
  await until(async () => (await stateOf()) === 'used', 'the use')
})

test('an upstream session created at one gateway continues at the other', async () => {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } }
  const begun = await shared.send(one, 'mcp', { method: 'initialize', params })
  const sealed = begun.headers.get('mcp-session-id') ?? ''
  assert.match(sealed, /^p1\./)
  const many = shared.upstream.received.length
  const answer = await shared.send(other, 'mcp', { method: 'tools/list' }, { 'mcp-session-id': sealed })
  assert.equal(answer.status, 200)
  assert.equal(shared.upstream.received[many]?.headers['mcp-session-id'], 'upstreams-own')
})

test('500 concurrent calls at two gateways never exceed a shared cap, and use all of it', async () => {
  // Shows D3.state.stateBackend.counters.shared.
  // Shows D3.state.stateBackend.counters, D3.state.stateBackend.maxConns, D3.state.stateBackend.schema.
  const at = (gateway: GatewayProcess) => Array.from({ length: 250 }, () => shared.refusal(gateway, 'pays', 'paid'))
  const refusals = await Promise.all([...at(one), ...at(other)])
  let passed = refusals.filter((why) => why === null).length
  assert.ok(passed <= 100, `${passed} passed`)
  // An overloaded machine causes other refusals; their holds are released.
  await until(async () => {
    if (passed < 100 && (await shared.refusal(passed % 2 === 0 ? one : other, 'pays', 'paid')) === null) passed++
    return passed >= 100
  }, 'the use of the whole cap')
  assert.equal(await shared.refusal(one, 'pays', 'paid'), 'budget_exceeded')
  assert.equal(passed, 100)
  for (const gateway of [one, other]) {
    await until(async () => (await spentIn(gateway, 'pays')).held === 0, 'every settlement')
    assert.deepEqual(await spentIn(gateway, 'pays'), { spent: 1_000_000, held: 0 })
  }
  const rated = await Promise.all(
    [one, other].flatMap((gateway) => Array.from({ length: 10 }, () => shared.refusal(gateway, 'rates', 'rated'))),
  )
  assert.equal(rated.filter((why) => why === null).length, 5)
  assert.equal(rated.filter((why) => why === 'rate_limited').length, 15)
  for (const [session, cap] of [
    ['each-one', 3],
    ['each-more', 4],
  ] as const) {
    const paid = await Promise.all(
      [one, other, one, other, one, other].map((at) => shared.refusal(at, session, 'paid')),
    )
    assert.equal(paid.filter((why) => why === null).length, cap, session)
    assert.equal(paid.filter((why) => why === 'budget_exceeded').length, 6 - cap, session)
  }
  const [open] = await postgres.rows(
    "SELECT count(*)::integer AS many FROM pg_stat_activity WHERE application_name = 'plat'",
  )
  // Each gateway has one more connection for leadership and notifications.
  assert.ok(Number(open?.many) <= 2 * (MAX_CONNECTIONS + 1), `${open?.many} connections`)
  const journals = await postgres.rows('SELECT name FROM replicas.journal ORDER BY name')
  assert.deepEqual(
    journals.map(({ name }) => name),
    [
      'approval-arguments',
      'approval-sessions',
      'approvals',
      'batches',
      'console-sessions',
      'files',
      'pins',
      'responses',
      'revocations',
      'taints',
      'tasks',
    ],
  )
})

const leads = async ({ url }: GatewayProcess) => {
  const text = await (await fetch(`${url}/metrics`)).text()
  assert.match(text, /^plat_gateway_state_backend_info\{type="postgres"\} 1$/m)
  return /^plat_gateway_leader\{job="state"\} 1$/m.test(text)
}

test('one of two gateways leads; when it is killed the other takes over, and counts holds as spent', async () => {
  // Shows D3.state.stateBackend.leader.retryMillis, D3.metric.plat_gateway_leader, D3.metric.plat_gateway_state_backend_info.
  const whoLeads = async () => [await leads(one), await leads(other)]
  await until(async () => (await whoLeads()).includes(true), 'a leader')
  if (await leads(other)) [one, other] = [other, one]
  const before = shared.upstream.received.length
  const cut = Array.from({ length: 20 }, () => shared.call(one, 'killed', 'paid', { stuck: true }).catch(() => null))
  await shared.upstream.request(before + 20)
  assert.deepEqual(await spentIn(other, 'killed'), { spent: 0, held: 200_000 })
  await one.kill()
  assert.deepEqual(new Set(await Promise.all(cut)), new Set([null]))
  await until(() => leads(other), 'the next leader')
  await until(async () => (await spentIn(other, 'killed')).held === 0, 'the holds')
  assert.deepEqual(await spentIn(other, 'killed'), { spent: 200_000, held: 0 })
})

test('without its database a gateway refuses calls that need it, soon all calls, and recovers afterwards, as one that starts meanwhile', async () => {
  assert.equal(await shared.refusal(other, 'after', 'paid'), null)
  await postgres.stop()
  const starting = shared.start()
  assert.equal(await shared.refusal(other, 'after', 'paid'), 'state_unavailable')
  assert.equal(await shared.refusal(other, 'after', 'asked'), 'state_unavailable')
  await until(
    async () => (await shared.refusal(other, 'after', 'free')) === 'revocations_unavailable',
    'the refusal of every call',
  )
  await postgres.start()
  await until(async () => (await shared.refusal(other, 'after', 'free')) === null, 'the first call')
  assert.equal(await shared.refusal(other, 'after', 'paid'), null)
  await until(async () => (await spentIn(other, 'after')).spent === 20_000, 'both calls')
  assert.equal(await shared.refusal(await starting, 'after', 'paid'), null)
})

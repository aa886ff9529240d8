import assert from 'node:assert/strict'
import { test } from 'node:test'
import { verifyLedger } from '@plat/ledger'
import { until } from '@plat/testkit/until'
import { ALL_ROLES } from '../../admin/roles.ts'
import { adminRoutes } from '../../admin/routes.ts'
import { BLUE, PREFIX, RED, type TestTenant } from './testing/files.ts'
import { type Owned, populate } from './testing/populate.ts'
import { setUpTenants, type TwoTenants } from './testing/two-tenants.ts'
import { leakIn, requestsAt } from './testing/walk.ts'

test('each tenant has its own chain, and calls, decisions and actions are in no other', async (t) => {
  // Shows D3.state.tenantsFile, D3.state.tenantLedgerDir and D3.default.computed.tenantLedgerDir.
  const { token, call, admin, ledger, ledgerPath } = await setUpTenants(t)
  for (const one of [RED, BLUE]) {
    assert.match((await call(token(one), `${one.name}-notes`, { text: one.mark })).text, /done/)
    assert.match((await call(token(one), `${one.name}-notes`, { tool: 'drop' })).text, /policy_denied/)
    const target = { session: `${one.namespace}/${one.name}-agent/other` }
    const made = await admin('POST /v1/revocations', {
      as: `${one.name}-killswitch`,
      body: { target, reason: one.mark },
    })
    assert.equal(made.status, 201, made.text)
  }
  const kinds = (tenant: string) =>
    ledger(tenant)
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).rec)
  await until(() => kinds('blue').some(({ kind }) => kind === 'admin'), 'the record of the last action')
  for (const [one, other] of [
    [RED, BLUE],
    [BLUE, RED],
  ] as const) {
    const records = kinds(one.name)
    assert.deepEqual([...new Set(records.map(({ tenant }) => tenant))], [one.name])
    for (const kind of ['config', 'outcome', 'decision', 'revocation', 'admin'])
      assert.ok(
        records.some((rec) => rec.kind === kind),
        `${one.name} has ${kind}`,
      )
    assert.doesNotMatch(ledger(one.name), new RegExp(other.mark))
    assert.equal((await verifyLedger(ledgerPath(one.name), {})).verdict, 'valid')
  }
  assert.doesNotMatch(ledger(''), /crimson|azure/)
})

/** Lists and records of a tenant, as its admin sees them. */
async function stateOf({ admin }: TwoTenants, { name }: TestTenant): Promise<string> {
  const lists = [
    'approvals',
    'session-approvals',
    'revocations',
    'audit/holds',
    'evidence',
    'pins',
    'sessions',
    'budgets',
  ]
  const replies = await Promise.all(lists.map((list) => admin(`GET /v1/${list}`, { as: `${name}-admin` })))
  const ledger = await admin('GET /v1/audit/records?limit=1000', { as: `${name}-auditor` })
  return [...replies, ledger].map(({ status, text }) => `${status} ${text}`).join('\n')
}

test('no route shows or changes anything of one tenant for a role of another, whatever ids it names', async (t) => {
  const fixture = await setUpTenants(t, { tenants: [RED, BLUE, PREFIX] })
  const { admin } = fixture
  const ends = new AbortController()
  const owned = new Map<TestTenant, Owned>()
  for (const one of [RED, BLUE, PREFIX]) owned.set(one, await populate(fixture, one, ends.signal))
  const of = (one: TestTenant) => owned.get(one) ?? assert.fail()
  const walked = new Set<string>()
  let seen = 0
  for (const [victim, others] of [
    [RED, ['blue', 're', 'blue-ns', 'free-ns']],
    [PREFIX, ['red']],
  ] as const) {
    const requests = await requestsAt(fixture, victim, of(victim))
    const before = await stateOf(fixture, victim)
    const leaks: string[] = []
    for (const other of others) {
      const roles = other === 'blue' ? ALL_ROLES : (['admin'] as const)
      const walk = async (role: string) => {
        for (const request of requests) {
          if (request.isOdd && (role !== 'admin' || other !== 'blue')) continue
          walked.add(request.operation)
          const leak = leakIn(
            await admin(request.route, { as: `${other}-${role}`, body: request.body }),
            request,
            victim,
          )
          if (leak !== null) leaks.push(`${other}-${role}: ${leak}`)
        }
      }
      await Promise.all(roles.map(walk))
    }
    assert.deepEqual(leaks, [])
    assert.equal(await stateOf(fixture, victim), before, `${victim.name} is unchanged`)
    // The same requests show much to the tenant itself: the walk names objects that exist.
    const own = requests.filter(({ route, isOdd }) => route.startsWith('GET ') && !isOdd)
    for (const request of own)
      if ((await admin(request.route, { as: `${victim.name}-admin` })).text.includes(victim.mark)) seen++
  }
  assert.ok(seen > 60, `the tenants see ${seen} of the responses to their requests`)
  const rows = Object.keys(adminRoutes).map((route) => route.replaceAll(/:(\w+)/g, '{$1}').replace(/\*$/, '{path}'))
  const named = rows.map((row) => row.replace('config{bundle}', 'config:bundle').replace('state{adopt}', 'state:adopt'))
  assert.deepEqual(named.filter((row) => !walked.has(row)).sort(), ['GET /debug/heap', 'GET /debug/profile'])
  ends.abort()
})

import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { TestClock } from '@plat/core'
import { tempFolder } from '@plat/testkit/local'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { until } from '@plat/testkit/until'
import type { Identity } from '../../call/index.ts'
import { AUDIENCE, provider } from '../../testing/people.ts'
import { started, TOKEN } from '../../testing/started.ts'
import { previewOf } from './preview.ts'
import { isPreviewView, type PreviewView } from './view.ts'

/** A caller of session `name`, on behalf of the others. */
function callerOf(name: string, own: Partial<Identity> = {}): Identity {
  const [namespace = '', agent = '', session = ''] = name.split('/')
  return {
    ...{ tenant: '', trustDomain: '', namespace, agent, session, user: 'ada', groups: [], verified: null },
    ...{ tier: 'tier-0', scopes: new Set(), jti: `jti of ${name}`, ancestors: [], delegators: [], forkedFrom: [] },
    ...{ chain: [], expiresAt: Number.POSITIVE_INFINITY, jkt: null, issuer: 'i', forkRoot: null, inheritedTaints: [] },
    ...own,
  }
}

test('a preview counts the calls that a revocation would end: own, of delegations and of forks, and no others', async () => {
  const first = { namespace: 'default', agent: 'a', session: 's1' }
  const callers: readonly (readonly [Identity, boolean])[] = [
    [callerOf('default/a/s1'), false],
    [callerOf('default/a/s1'), true],
    [callerOf('default/b/s2', { delegators: [first] }), false],
    [callerOf('default/a/s3', { forkedFrom: [first] }), false],
    [callerOf('default/a/s4'), false],
  ]
  const parts = {
    live: {
      each(visit: (call: { identity: Identity; long: boolean }) => void) {
        for (const [identity, long] of callers) visit({ identity, long })
      },
    },
    sessions: () => ['default/a/s1', 'default/a/idle', 'bank/a/s1'].map((name) => callerOf(name)),
    pendingOf: ({ session }: { session: string }) => (session === 's1' ? 2 : 0),
    clock: new TestClock(),
  }
  const all = () => true
  const preview = await previewOf({ session: 'default/a/s1' }, parts, all)
  assert.deepEqual([preview.calls, preview.tokens, preview.pendingApprovals], [{ total: 4, long: 1 }, 3, 2])
  assert.deepEqual(
    preview.sessions.items.map(({ id, relation, calls }) => `${id} ${relation} ${calls}`),
    ['default/a/s1 own 2', 'default/a/s3 forked 1', 'default/b/s2 delegated 1'],
  )
  assert.deepEqual([preview.sessions.delegated, preview.sessions.forked], [1, 1])
  assert.equal((await previewOf({ agent: 'default/a' }, parts, all)).sessions.total, 5)
  assert.equal((await previewOf({ all: true }, parts, all)).sessions.total, 6)
  assert.deepEqual((await previewOf({ jti: 'jti of default/a/s4' }, parts, all)).calls, { total: 1, long: 0 })
})

/** A gateway with two held calls of one session, and those of `others`, by the claims of their tokens. */
async function setUp(t: TestContext, others: readonly object[] = []) {
  const policyFile = join(tempFolder(), 'policies.json')
  const rules = [{ name: 'ask', action: 'require_approval' }]
  const bank = { name: 'bank/all', namespace: 'bank', agents: ['teller'] }
  await writeFile(policyFile, policiesFile([testPolicy({ rules }), testPolicy({ ...bank, rules })]))
  const people = await provider(t)
  const { gateway, issuer } = await started(t, {
    policyFile,
    adminAuth: {
      mode: 'both',
      oidc: { issuer: people.state.issuer, audience: AUDIENCE },
      namespaceRoles: { default: { viewer: ['staff'], killswitch: ['oncall'] }, bank: { killswitch: ['bank'] } },
    },
  })
  const names = { plat_ns: 'default', plat_agent: 'assistant', plat_session: 's1' }
  const sub = 'spiffe://plat.local/ns/default/agent/assistant/session/s1'
  const claims = [{ sub, ...names }, { sub, ...names }, ...others]
  const held = claims.map((own, name) =>
    fetch(`${gateway.url}/mcp/notes`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${issuer.token({ scope: 'tools:notes', ...own })}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'read', arguments: { name } },
      }),
    }),
  )
  const admin = async (method: string, path: string, body?: object, token = TOKEN) => {
    const headers = { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) }
    const response = await fetch(`${gateway.adminUrl}/v1/${path}`, {
      method,
      headers,
      ...(body && { body: JSON.stringify(body) }),
    })
    return { status: response.status, body: JSON.parse(await response.text()) }
  }
  await until(
    async () => (await admin('GET', 'approvals?state=pending')).body.items.length === held.length,
    'all calls wait',
  )
  return { admin, held, as: (group: string) => people.token({ groups: [group] }) }
}

test('the preview says what the revocation then ends, and ends nothing itself', async (t) => {
  const { admin, held } = await setUp(t)
  const target = { session: 'default/assistant/s1' }
  const { status, body } = await admin('POST', 'revocations/preview', { target })
  assert.equal(status, 200)
  assert.ok(isPreviewView(body))
  const preview: PreviewView = body
  assert.deepEqual([preview.calls.total, preview.pendingApprovals, preview.sessions.total], [2, 2, 1])
  assert.deepEqual((await admin('GET', 'revocations')).body.items, [])
  assert.equal((await admin('GET', 'approvals?state=pending')).body.items.length, 2)
  const records = await admin('GET', 'audit/records?kind=admin')
  assert.deepEqual(records.body.items, [], 'reading leaves no record')
  assert.equal((await admin('POST', 'revocations', { target })).body.cut, preview.calls.total)
  for (const response of await Promise.all(held)) assert.match(await response.text(), /revoked/)
})

test('only those who may revoke a target see what that would end', async (t) => {
  const { admin, held, as } = await setUp(t)
  const target = { session: 'default/assistant/s1' }
  for (const [group, wanted, status] of [
    ['oncall', target, 200],
    ['staff', target, 403],
    ['bank', target, 403],
    ['oncall', { user: 'ada' }, 403],
    ['oncall', { session: 'no slashes' }, 400],
  ] as const)
    assert.equal(
      (await admin('POST', 'revocations/preview', { target: wanted }, await as(group))).status,
      status,
      group,
    )
  const extra = await admin('POST', 'revocations/preview', { target, mode: 'suspend' })
  assert.equal(extra.status, 400)
  await admin('POST', 'revocations', { target })
  await Promise.all(held)
})

test('a session of another namespace that the target delegated to is counted, and not named', async (t) => {
  const own = 'spiffe://plat.local/ns/default/agent/assistant/session/s1'
  const names = { plat_ns: 'bank', plat_agent: 'teller', plat_session: 'secret' }
  const sub = 'spiffe://plat.local/ns/bank/agent/teller/session/secret'
  const delegated = { sub, ...names, act: { sub: own, act: { sub: 'user:uma' } }, plat_delegator_jti: 'j' }
  const { admin, held, as } = await setUp(t, [delegated])
  const target = { session: 'default/assistant/s1' }
  const { body } = await admin('POST', 'revocations/preview', { target }, await as('oncall'))
  const { calls, sessions, pendingApprovals } = body
  assert.deepEqual([calls.total, sessions.total, sessions.delegated, pendingApprovals], [3, 2, 1, 3])
  assert.deepEqual(
    sessions.items.map(({ id }: { id: string }) => id),
    ['default/assistant/s1'],
  )
  assert.doesNotMatch(JSON.stringify(body), /bank|teller|secret|uma/)
  const whole = await admin('POST', 'revocations/preview', { target })
  assert.match(JSON.stringify(whole.body), /bank\/teller\/secret/)
  await admin('POST', 'revocations', { target })
  for (const response of await Promise.all(held)) assert.match(await response.text(), /revoked/)
})

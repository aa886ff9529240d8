import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import type { Rec } from '@plat/ledger'
import { silentLog } from '@plat/process'
import { createMemoryJournal } from '@plat/state'
import type { Denial, Identity } from '../../call/index.ts'
import type { Revocation, RevocationEvent, RevocationTarget } from './format.ts'
import { Revocations } from './revocations.ts'

const ada: Identity = {
  tenant: 'acme',
  trustDomain: '',
  namespace: 'default',
  agent: 'assistant',
  session: 's1',
  user: 'ada',
  groups: [],
  verified: 'requester',
  tier: 'tier-1',
  scopes: new Set(),
  jti: 'own',
  ancestors: ['parent', 'delegator'],
  delegators: [{ namespace: 'team', agent: 'planner', session: 'p' }],
  forkedFrom: [{ namespace: 'default', agent: 'first', session: 'f' }],
  chain: ['default/planner'],
  expiresAt: Number.POSITIVE_INFINITY,
  jkt: null,
  issuer: 'https://broker.example',
  forkRoot: null,
  inheritedTaints: [],
}

function entry(target: RevocationTarget, more: Partial<Revocation> = {}): Revocation {
  return {
    id: JSON.stringify(target),
    target,
    mode: 'revoke',
    reason: 'lost laptop',
    createdAt: '2026-01-01T00:00:00Z',
    expiresAt: null,
    ...more,
  }
}

async function setUp() {
  const records: Rec[] = []
  const clock = new TestClock()
  const counted: string[] = []
  const cuts: (Denial | null)[] = []
  const forgotten: string[] = []
  const live = {
    cut(judge: (who: Identity) => Denial | null) {
      const denial = judge(ada)
      cuts.push(denial)
      return denial === null ? 0 : 1
    },
  }
  const revocations = new Revocations({
    journal: createMemoryJournal<RevocationEvent>(() => clock.now()),
    file: null,
    mirrorNamespace: 'plat-system',
    clock,
    log: silentLog,
    live,
    forgetTokens: () => forgotten.push('all'),
    record: (record) => records.push(record),
    metrics: { revoked: (scope) => counted.push(scope), active() {}, propagated() {}, listOk() {} },
  })
  await revocations.open()
  return { clock, revocations, counted, cuts, records, forgotten }
}

const matching: readonly [RevocationTarget, Denial['revoked']][] = [
  [{ jti: 'own' }, 'jti'],
  [{ jti: 'parent' }, 'jti'],
  [{ jti: 'delegator' }, 'jti'],
  [{ session: 'default/assistant/s1' }, 'session'],
  [{ agent: 'default/assistant' }, 'agent'],
  [{ namespace: 'default' }, 'namespace'],
  [{ user: 'ada' }, 'user'],
  // The sessions that delegated to the caller, and those that it was forked from.
  [{ session: 'team/planner/p' }, 'session'],
  [{ agent: 'team/planner' }, 'agent'],
  [{ namespace: 'team' }, 'namespace'],
  [{ session: 'default/first/f' }, 'session'],
  [{ agent: 'default/first' }, 'agent'],
  [{ tenant: 'acme' }, 'tenant'],
  [{ all: true }, 'all'],
]
const others: readonly RevocationTarget[] = [
  { jti: 's1' },
  { session: 's1' },
  { session: 'default/assistant/s2' },
  { agent: 'assistant' },
  { agent: 'default/planner' },
  { agent: 'team/assistant' },
  { session: 'team/planner/f' },
  { session: 'default/first/p' },
  { namespace: 'defaul' },
  { user: 'eve' },
  { tenant: '' },
]

test('each target refuses matching callers, ends their live calls, and is counted by its scope', async () => {
  for (const [target, scope] of matching) {
    const { revocations, counted, cuts, forgotten } = await setUp()
    assert.equal(revocations.judge(ada), null)
    assert.equal((await revocations.revoke(entry(target), 'me')).cut, 1, JSON.stringify(target))
    const denial = revocations.judge(ada)
    assert.deepEqual([denial?.code, denial?.revoked], ['revoked', scope])
    assert.deepEqual(cuts, [denial])
    assert.equal(forgotten.length, 1, 'verified tokens are verified again')
    assert.deepEqual(counted, [scope])
  }
})

test('a target refuses no other callers', async () => {
  const { revocations } = await setUp()
  for (const target of others)
    assert.equal((await revocations.revoke(entry(target), 'me')).cut, 0, JSON.stringify(target))
  assert.equal(revocations.list().length, others.length)
})

test('a suspension has its own code and ends when it is lifted', async () => {
  const { revocations } = await setUp()
  await revocations.revoke(entry({ agent: 'default/assistant' }, { id: 'r1', mode: 'suspend' }), 'me')
  assert.equal(revocations.judge(ada)?.code, 'suspended')
  assert.equal(await revocations.lift('r1', 'me'), 'lifted')
  assert.equal(await revocations.lift('r1', 'me'), 'unknown')
  assert.equal(revocations.judge(ada), null)
})

test('lifting one of two entries for the same session leaves the other in force', async () => {
  const { revocations } = await setUp()
  await revocations.revoke(entry({ user: 'ada' }, { id: 'r1' }), 'me')
  await revocations.revoke(entry({ user: 'ada' }, { id: 'r2' }), 'me')
  await revocations.lift('r1', 'me')
  assert.equal(revocations.judge(ada)?.code, 'revoked')
})

test('an entry expires', async () => {
  const { clock, revocations } = await setUp()
  await revocations.revoke(entry({ all: true }, { expiresAt: '2026-01-01T00:00:10.500Z' }), 'me')
  await clock.advance(10_499)
  assert.equal(revocations.judge(ada)?.code, 'revoked')
  await clock.advance(1)
  assert.equal(revocations.judge(ada), null)
  assert.deepEqual(revocations.list(), [])
})

test('the reason of an entry is not sent to the caller', async () => {
  const { revocations } = await setUp()
  await revocations.revoke(entry({ all: true }), 'me')
  assert.doesNotMatch(JSON.stringify(revocations.judge(ada)), /laptop/)
})

test('followers of users are notified of users revoked by name, but not of suspended or indirectly revoked ones', async () => {
  const { revocations, clock } = await setUp()
  const notified: string[] = []
  revocations.followUsers((user) => notified.push(user))
  const later = new Date(clock.now() + 1_000).toISOString()
  await revocations.revoke(entry({ user: 'ada' }, { expiresAt: later }), 'me')
  await revocations.revoke(entry({ user: 'bob' }, { mode: 'suspend' }), 'me')
  await revocations.revoke(entry({ all: true }), 'me')
  await revocations.revoke(entry({ agent: 'default/assistant' }), 'me')
  assert.deepEqual(notified, ['ada'])
  assert.deepEqual(
    ['ada', 'bob', 'eve'].map((user) => revocations.hasRevoked(user, ada.issuer)),
    [true, false, false],
  )
  clock.advance(1_000)
  assert.equal(revocations.hasRevoked('ada', ada.issuer), false)
})

test('a target user with an issuer revokes at that issuer only, without one at every issuer', async () => {
  const { revocations } = await setUp()
  const elsewhere = { ...ada, issuer: 'https://other.example' }
  await revocations.revoke(entry({ user: `${ada.issuer}#ada` }), 'me')
  assert.equal(revocations.judge(ada)?.revoked, 'user')
  assert.equal(revocations.judge(elsewhere), null)
  assert.equal(revocations.judge({ ...ada, user: 'bob' }), null)
  assert.deepEqual(
    [ada, elsewhere].map(({ issuer }) => revocations.hasRevoked('ada', issuer)),
    [true, false],
  )
  await revocations.revoke(entry({ user: 'ada' }), 'me')
  assert.equal(revocations.judge(elsewhere)?.revoked, 'user')
  assert.equal(revocations.hasRevoked('ada', elsewhere.issuer), true)
})

test('a session has ended while it is revoked as a whole: not suspended, and not by one of its tokens', async () => {
  const { revocations, clock } = await setUp()
  const { tenant, namespace, agent, session, user } = ada
  const hasEnded = () => revocations.hasEnded({ tenant, namespace, agent, session, user })
  await revocations.revoke(entry({ session: 'default/assistant/s1' }, { id: '1', mode: 'suspend' }), 'token:admin')
  await revocations.revoke(entry({ jti: 'own' }, { id: '2' }), 'token:admin')
  await revocations.revoke(entry({ user: 'https://broker.example#ada' }, { id: '3' }), 'token:admin')
  assert.equal(hasEnded(), false)
  const expiresAt = new Date(clock.now() + 1000).toISOString()
  await revocations.revoke(entry({ agent: 'default/assistant' }, { id: '4', expiresAt }), 'token:admin')
  assert.equal(hasEnded(), true)
  clock.advance(1001)
  assert.equal(hasEnded(), false)
})

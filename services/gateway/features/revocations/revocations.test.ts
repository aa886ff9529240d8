import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import type { Denial, Identity } from '../../call/index.ts'
import { createRevocations, type Revocation, type RevocationTarget } from './index.ts'

const ada: Identity = {
  tenant: 'acme',
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

function world() {
  const clock = new TestClock()
  const counted: string[] = []
  const cuts: (Denial | null)[] = []
  const live = {
    cut(judge: (who: Identity) => Denial | null) {
      const denial = judge(ada)
      cuts.push(denial)
      return denial === null ? 0 : 1
    },
  }
  const revocations = createRevocations({ clock, live, metrics: { revoked: (scope) => counted.push(scope) } })
  return { clock, revocations, counted, cuts }
}

const matching: readonly [RevocationTarget, Denial['revoked']][] = [
  [{ jti: 'own' }, 'jti'],
  [{ jti: 'parent' }, 'jti'],
  [{ jti: 'delegator' }, 'jti'],
  [{ session: 'default/assistant/s1' }, 'session'],
  [{ agent: 'default/assistant' }, 'agent'],
  [{ namespace: 'default' }, 'namespace'],
  [{ user: 'ada' }, 'user'],
  [{ tenant: 'acme' }, 'tenant'],
  [{ all: true }, 'all'],
]
const others: readonly RevocationTarget[] = [
  { jti: 's1' },
  { session: 's1' },
  { session: 'default/assistant/s2' },
  { agent: 'assistant' },
  { agent: 'default/planner' },
  { namespace: 'defaul' },
  { user: 'eve' },
  { tenant: '' },
]

test('each target refuses who it names, ends the live calls, and is counted by its scope', () => {
  for (const [target, scope] of matching) {
    const { revocations, counted, cuts } = world()
    assert.equal(revocations.judge(ada), null)
    assert.equal(revocations.add(entry(target)), 1, JSON.stringify(target))
    const denial = revocations.judge(ada)
    assert.deepEqual([denial?.code, denial?.revoked], ['revoked', scope])
    assert.deepEqual(cuts, [denial])
    assert.deepEqual(counted, [scope])
  }
})

test('a target that names somebody else refuses nobody', () => {
  const { revocations } = world()
  for (const target of others) assert.equal(revocations.add(entry(target)), 0, JSON.stringify(target))
  assert.equal(revocations.list().length, others.length)
})

test('a suspension has its own code and ends when it is lifted', () => {
  const { revocations } = world()
  revocations.add(entry({ agent: 'default/assistant' }, { id: 'r1', mode: 'suspend' }))
  assert.equal(revocations.judge(ada)?.code, 'suspended')
  assert.equal(revocations.lift('r1'), true)
  assert.equal(revocations.lift('r1'), false)
  assert.equal(revocations.judge(ada), null)
})

test('lifting one of two entries for the same session leaves the other in force', () => {
  const { revocations } = world()
  revocations.add(entry({ user: 'ada' }, { id: 'r1' }))
  revocations.add(entry({ user: 'ada' }, { id: 'r2' }))
  revocations.lift('r1')
  assert.equal(revocations.judge(ada)?.code, 'revoked')
})

test('an entry ends at its time, and a time that cannot be read is refused', async () => {
  const { clock, revocations } = world()
  revocations.add(entry({ all: true }, { expiresAt: '2026-01-01T00:00:10Z' }))
  await clock.advance(9_999)
  assert.equal(revocations.judge(ada)?.code, 'revoked')
  await clock.advance(1)
  assert.equal(revocations.judge(ada), null)
  assert.deepEqual(revocations.list(), [])
  assert.throws(() => revocations.add(entry({ all: true }, { expiresAt: 'tomorrow' })), /expiresAt/)
})

test('the reason that people wrote is not told to the caller', () => {
  const { revocations } = world()
  revocations.add(entry({ all: true }))
  assert.doesNotMatch(JSON.stringify(revocations.judge(ada)), /laptop/)
})

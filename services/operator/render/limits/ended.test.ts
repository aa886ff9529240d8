import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Resource } from '@plat/resources'
import { resource } from '../../sessions/testing/resource.ts'
import { EndedSessions } from './ended.ts'

const HOUR_MS = 3_600_000
const STARTED = Date.parse('2026-01-01T00:00:00Z')
const ENDED = STARTED + 60_000

type Session = Resource<'AgentSession'>
type Phase = NonNullable<NonNullable<Session['status']>['phase']>

function session(phase: Phase, uid = 'u1'): Session {
  const made = resource('AgentSession', 's', { agentRef: 'a' })
  const lastTransitionTime = new Date(ENDED).toISOString()
  const ready = { type: 'Ready', status: 'False', reason: phase, message: '', lastTransitionTime } as const
  const startedAt = new Date(STARTED).toISOString()
  return {
    ...made,
    metadata: { ...made.metadata, uid },
    status: { phase, startedAt, jti: `jti-${uid}`, conditions: [ready] },
  }
}

const KEY = 'team/s'

/** Notes how the session of the name `s` is; undefined: it is gone. */
const see = (ended: EndedSessions, now: Session | undefined, at: number, hadBegun = false) =>
  ended.see([KEY], { find: () => now, hadBegun: () => hadBegun }, at)

test('a session that ends is revoked for as long as a token of it may be valid', () => {
  for (const phase of ['Cancelled', 'Expired', 'Failed', 'Succeeded', 'Revoked'] as const) {
    const ended = new EndedSessions()
    assert.equal(see(ended, session('Running'), STARTED), false)
    assert.deepEqual(ended.entries(ENDED), [])
    assert.equal(see(ended, session(phase), ENDED), true)
    const [entry, ...more] = ended.entries(ENDED + 1)
    assert.deepEqual(more, [])
    assert.deepEqual([entry?.target, entry?.mode], [{ session: 'team/a/s' }, 'revoke'], phase)
    assert.equal(Date.parse(entry?.expiresAt ?? ''), ENDED + HOUR_MS)
    assert.equal(see(ended, session(phase), ENDED), false, 'nothing new')
    assert.equal(ended.countOf('team'), 1)
    assert.deepEqual([ended.entries(ENDED + HOUR_MS), ended.countOf('team')], [[], 0])
    assert.equal(see(ended, session(phase), ENDED + HOUR_MS), false, 'long ended')
  }
})

test('a session that is deleted while it runs is revoked, and another one of its name is not', () => {
  const ended = new EndedSessions()
  see(ended, session('Running'), STARTED)
  assert.equal(see(ended, undefined, ENDED), true)
  assert.deepEqual(ended.entries(ENDED)[0]?.target, { session: 'team/a/s' })
  assert.equal(see(ended, session('Running', 'u2'), ENDED), true)
  assert.deepEqual(ended.entries(ENDED)[0]?.target, { jti: 'jti-u1' })
  assert.deepEqual(ended.entries(ENDED + HOUR_MS), [])
})

test('of several sessions that had one name each is revoked', () => {
  const ended = new EndedSessions()
  for (const uid of ['u1', 'u2']) {
    see(ended, session('Running', uid), STARTED)
    see(ended, undefined, ENDED)
  }
  see(ended, session('Running', 'u3'), ENDED)
  assert.deepEqual(
    ended.entries(ENDED).map(({ target }) => target),
    [{ jti: 'jti-u1' }, { jti: 'jti-u2' }],
  )
  assert.deepEqual([ended.countOf('team'), ended.countOf('other')], [2, 0])
})

test('a session that never began is not a reason for an entry, unless it had begun unseen', () => {
  const pending = { ...session('Pending'), status: { phase: 'Pending' as const } }
  for (const hadBegun of [false, true]) {
    const ended = new EndedSessions()
    see(ended, pending, STARTED)
    assert.equal(see(ended, undefined, ENDED, hadBegun), hadBegun)
    assert.equal(ended.countOf('team'), hadBegun ? 1 : 0)
  }
})

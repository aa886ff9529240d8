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

test('a session that ends is revoked for as long as a token of it may be valid', () => {
  for (const phase of ['Cancelled', 'Expired', 'Failed', 'Succeeded', 'Revoked'] as const) {
    const ended = new EndedSessions()
    assert.equal(
      ended.see([KEY], () => session('Running'), STARTED),
      true,
    )
    assert.deepEqual(ended.entries(ENDED), [])
    assert.equal(
      ended.see([KEY], () => session(phase), ENDED),
      true,
    )
    const [entry, ...more] = ended.entries(ENDED + 1)
    assert.deepEqual(more, [])
    assert.deepEqual([entry?.target, entry?.mode], [{ session: 'team/a/s' }, 'revoke'], phase)
    assert.equal(Date.parse(entry?.expiresAt ?? ''), ENDED + HOUR_MS)
    assert.equal(
      ended.see([KEY], () => session(phase), ENDED),
      false,
      'nothing new',
    )
    assert.deepEqual(ended.entries(ENDED + HOUR_MS), [])
  }
})

test('a session that is deleted while it runs is revoked, and another one of its name is not', () => {
  const ended = new EndedSessions()
  ended.see([KEY], () => session('Running'), STARTED)
  assert.equal(
    ended.see([KEY], () => undefined, ENDED),
    true,
  )
  assert.deepEqual(ended.entries(ENDED)[0]?.target, { session: 'team/a/s' })
  ended.see([KEY], () => session('Running', 'u2'), ENDED)
  assert.deepEqual(ended.entries(ENDED)[0]?.target, { jti: 'jti-u1' })
  assert.deepEqual(ended.entries(ENDED + HOUR_MS), [])
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rfc3339 } from '@plat/core'
import type { Resource } from '@plat/resources'
import fc from 'fast-check'
import { decide, type Phase, type SessionFacts } from './phase.ts'
import { AgentQuota } from './quota.ts'
import { endOf, idleMsOf } from './times.ts'

const START = Date.parse('2026-01-01T00:00:00Z')
const MINUTE = 60_000

type Status = NonNullable<Resource<'AgentSession'>['status']>

function sessionOf(spec: object = {}, status: Status = {}, name = 's'): Resource<'AgentSession'> {
  return {
    apiVersion: 'plat.dev/v1alpha1',
    kind: 'AgentSession',
    metadata: {
      name,
      namespace: 'team',
      uid: name,
      resourceVersion: '1',
      generation: 1,
      creationTimestamp: rfc3339(START),
    },
    spec: { agentRef: 'a', ...spec },
    status,
  }
}

const ready = (status: 'True' | 'False', reason: string, since = START): NonNullable<Status['conditions']> => [
  { type: 'Ready', status, reason, message: '', lastTransitionTime: rfc3339(since) },
]

/** A session that began and runs, with its Sandbox. */
const running: Status = { phase: 'Running', startedAt: rfc3339(START), conditions: ready('True', 'Running') }
const up = { name: 's', uid: 'u', ready: true, finished: null }

function factsOf(session: Resource<'AgentSession'>, more: Partial<SessionFacts> = {}): SessionFacts {
  return {
    ...{ session, now: START, hindrance: null, room: true, revoked: null, sandbox: null, endsAt: null },
    ...{ idleMs: null, lastActivity: null, ...more },
  }
}

const phaseOf = (status: Status, more: Partial<SessionFacts> = {}, spec: object = {}) => {
  const { phase, reason, sandbox } = decide(factsOf(sessionOf(spec, status), more))
  return `${phase} ${reason} ${sandbox}`
}

test('a session waits for what it needs, is prepared, and runs when its Sandbox is ready', () => {
  const hindrance = { reason: 'AgentNotFound', message: 'there is no Agent a' }
  assert.equal(phaseOf({}, { hindrance }), 'Pending AgentNotFound none')
  assert.equal(phaseOf({}, { room: false }), 'Pending QuotaExceeded none')
  const begins = decide(factsOf(sessionOf()))
  assert.deepEqual([begins.phase, begins.begins, begins.sandbox], ['Preparing', true, 'running'])
  const preparing: Status = { phase: 'Preparing', startedAt: rfc3339(START) }
  assert.equal(phaseOf(preparing), 'Preparing Preparing running')
  assert.equal(phaseOf(preparing, { sandbox: { ...up, ready: false } }), 'Preparing Preparing running')
  assert.equal(phaseOf(preparing, { sandbox: up }), 'Running Running running')
  // Conditions that prevent a start do not end a running session.
  assert.equal(phaseOf(running, { sandbox: up, hindrance, room: false }), 'Running Running running')
  assert.equal(phaseOf(running, { sandbox: { ...up, ready: false } }), 'Running SandboxNotReady running')
})

test('a session ends as its pod did, when its time is over, by a revocation, and when it is cancelled', () => {
  // Shows D2.state.session.terminalPhases.
  const sandbox = (finished: 'Succeeded' | 'Failed') => ({ ...up, finished })
  assert.equal(phaseOf(running, { sandbox: sandbox('Succeeded') }), 'Succeeded PodSucceeded none')
  assert.equal(phaseOf(running, { sandbox: sandbox('Failed') }), 'Failed PodFailed none')
  assert.equal(phaseOf(running, { sandbox: up, endsAt: START }), 'Expired Expired none')
  assert.equal(phaseOf(running, { sandbox: up, endsAt: START + 1 }), 'Running Running running')
  assert.equal(phaseOf(running, { sandbox: up, revoked: 'revoke' }), 'Revoked Revoked none')
  assert.equal(phaseOf(running, { sandbox: up }, { cancel: true }), 'Cancelled Cancelled none')
  // Before it began, too.
  assert.equal(phaseOf({}, { revoked: 'revoke' }), 'Revoked Revoked none')
  assert.equal(phaseOf({}, {}, { cancel: true }), 'Cancelled Cancelled none')
})

test('an ended session stays ended, whatever happens', () => {
  const ends: Phase[] = ['Succeeded', 'Failed', 'Expired', 'Revoked', 'Cancelled']
  const facts = fc.record({
    phase: fc.constantFrom(...ends),
    room: fc.boolean(),
    revoked: fc.constantFrom('revoke' as const, 'suspend' as const, null),
    sandbox: fc.constantFrom(up, { ...up, ready: false }, { ...up, finished: 'Failed' as const }, null),
    now: fc.integer({ min: START, max: START + 1000 * MINUTE }),
    idleMs: fc.constantFrom(null, MINUTE),
    suspend: fc.boolean(),
    cancel: fc.boolean(),
  })
  fc.assert(
    fc.property(facts, ({ phase, suspend, cancel, ...more }) => {
      const session = sessionOf({ suspend, cancel }, { ...running, phase })
      const decision = decide(factsOf(session, more))
      assert.deepEqual([decision.phase, decision.sandbox, decision.begins], [phase, 'none', false])
    }),
  )
})

test('a session whose activity is reported is suspended after idleTimeout without any, and a newer activity resumes it', () => {
  // Shows D2.state.session.idleSuspended, D2.agent.idleTimeout.
  const idleMs = 15 * MINUTE
  const at = (minutes: number, lastActivity: number | null = START) =>
    decide(factsOf(sessionOf({}, running), { sandbox: up, idleMs, now: START + minutes * MINUTE, lastActivity }))
  assert.deepEqual([at(14).phase, at(14).wakeAt], ['Running', START + idleMs])
  assert.deepEqual([at(15).phase, at(15).reason, at(15).sandbox], ['Suspended', 'Idle', 'suspended'])
  assert.equal(at(20, START + 10 * MINUTE).phase, 'Running')
  // Without a report it counts as working.
  assert.deepEqual([at(1000, null).phase, at(1000, null).wakeAt], ['Running', null])
  assert.equal(at(25, START + 10 * MINUTE).phase, 'Suspended')
  const slept = { ...running, phase: 'Suspended' as const, conditions: ready('False', 'Idle', START + 15 * MINUTE) }
  const later = { idleMs, now: START + 60 * MINUTE }
  assert.equal(phaseOf(slept, later), 'Suspended Idle suspended')
  assert.equal(phaseOf(slept, { ...later, lastActivity: START + 10 * MINUTE }), 'Suspended Idle suspended')
  assert.equal(phaseOf(slept, { ...later, lastActivity: START + 59 * MINUTE }), 'Preparing Preparing running')
  // It is not idle before it has run again for as long.
  const woken = { ...running, conditions: ready('True', 'Running', START + 60 * MINUTE) }
  const now = START + 70 * MINUTE
  assert.equal(phaseOf(woken, { idleMs, sandbox: up, now }), 'Running Running running')
  assert.equal(phaseOf(running, { idleMs: null, sandbox: up, now }), 'Running Running running')
})

test('a session is suspended by its spec or a revocation, expires all the same, and goes on afterwards', () => {
  const paused = { ...running, phase: 'Suspended' as const, conditions: ready('False', 'Suspended') }
  assert.equal(phaseOf(running, { sandbox: up }, { suspend: true }), 'Suspended Suspended suspended')
  assert.equal(phaseOf(running, { sandbox: up, revoked: 'suspend' }), 'Suspended Suspended suspended')
  assert.equal(phaseOf(paused, { sandbox: { ...up, ready: false } }), 'Preparing Preparing running')
  assert.equal(phaseOf(paused, { endsAt: START }, { suspend: true }), 'Expired Expired none')
  assert.equal(phaseOf({}, {}, { suspend: true }), 'Pending Suspended none')
})

test('an agent has as many sessions as maxConcurrentSessions, the oldest of those that wait first; 0 is no limit', () => {
  // Shows D2.agent.maxConcurrentSessions, D2.agent.maxConcurrentSessions.zero.
  const waiting = ['a', 'b', 'c'].map((name) => sessionOf({}, {}, name))
  const [first, second, third] = waiting
  assert.ok(first !== undefined && second !== undefined && third !== undefined)
  const roomFor = (session: Resource<'AgentSession'>, others: Resource<'AgentSession'>[], max: number) => {
    const quota = new AgentQuota()
    for (const other of others) quota.see(other.metadata.name, other)
    return quota.hasRoom(session, max)
  }
  assert.ok(roomFor(first, [second, third], 1))
  assert.ok(!roomFor(second, [first, third], 1))
  assert.ok(roomFor(second, [first, third], 2))
  assert.ok(roomFor(third, [first, second], 0))
  const active = sessionOf({}, running, 'z')
  const asleep = sessionOf({}, { ...running, phase: 'Suspended' }, 'y')
  assert.ok(!roomFor(first, [active, asleep], 2))
  assert.ok(roomFor(first, [active, sessionOf({}, { ...running, phase: 'Failed' }, 'y')], 2))
  // A session that cannot start does not count against the limit.
  const stuck = sessionOf({}, { phase: 'Pending', conditions: ready('False', 'AgentNotFound') }, 'a')
  assert.ok(roomFor(second, [stuck], 1))
  assert.ok(roomFor(second, [sessionOf({ suspend: true }, {}, 'a')], 1))
})

test('the shortest of the lifetimes counts, and without one a session does not end by itself', () => {
  const session = sessionOf({ ttl: '1h' })
  const agent = { image: 'i', tier: 't', maxSessionTTL: '30m' }
  assert.equal(endOf(START, { session }), START + 60 * MINUTE)
  assert.equal(endOf(START, { session, agent }), START + 30 * MINUTE)
  assert.equal(endOf(START, { session, agent, tier: { maxSessionTTL: '10m' } }), START + 10 * MINUTE)
  assert.equal(endOf(START, { session: sessionOf() }), null)
  // Shows D2.agent.idleTimeout.default.
  assert.deepEqual([idleMsOf({}), idleMsOf({ idleTimeout: '0s' })], [15 * MINUTE, null])
})

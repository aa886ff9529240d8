import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Resource } from '@plat/resources'
import fc from 'fast-check'
import { resource } from '../testing/resource.ts'
import { AgentQuota } from './quota.ts'

type Session = Resource<'AgentSession'>

function sessionOf(name: string, second: number, status: Session['status'] = {}): Session {
  const made = resource('AgentSession', name, { agentRef: 'a' })
  const creationTimestamp = `2026-01-01T00:00:${String(second).padStart(2, '0')}Z`
  return { ...made, metadata: { ...made.metadata, creationTimestamp }, status }
}

const running: Session['status'] = { phase: 'Running', startedAt: '2026-01-01T00:00:00Z' }
const ended: Session['status'] = { phase: 'Failed', startedAt: '2026-01-01T00:00:00Z' }

test('an end, and a session that begins to wait, are reasons to look at those that wait, and nothing else is', () => {
  const quota = new AgentQuota()
  assert.equal(quota.see('a', sessionOf('a', 1)), true, 'waits')
  assert.equal(quota.see('a', sessionOf('a', 1)), false, 'waits on')
  assert.equal(quota.see('a', sessionOf('a', 1, running)), false, 'begins')
  assert.equal(quota.see('a', sessionOf('a', 1, running)), false, 'runs on')
  quota.see('b', sessionOf('b', 2))
  quota.see('c', sessionOf('c', 3))
  assert.deepEqual([quota.admissible(1), quota.admissible(2), quota.admissible(9)], [[], ['b'], ['b', 'c']])
  assert.equal(quota.see('a', sessionOf('a', 1, ended)), true, 'ends')
  assert.deepEqual(quota.admissible(1), ['b'])
  quota.forget('b')
  assert.deepEqual(quota.admissible(1), ['c'])
})

test('the free places counted after any changes of sessions equal a full count', () => {
  const change = fc.record({
    name: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
    second: fc.nat({ max: 3 }),
    status: fc.constantFrom(null, {}, running, ended, 'gone' as const),
    suspend: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(change, { maxLength: 40 }), fc.integer({ min: 1, max: 4 }), (changes, max) => {
      const quota = new AgentQuota()
      const all = new Map<string, Session>()
      for (const { name, second, status, suspend } of changes) {
        const made = sessionOf(name, second, status === 'gone' || status === null ? {} : status)
        const session = { ...made, spec: { ...made.spec, suspend } }
        if (status === 'gone') {
          all.delete(name)
          quota.forget(name)
        } else {
          all.set(name, session)
          quota.see(name, session)
        }
      }
      const place = ({ metadata }: Session) => `${metadata.creationTimestamp} ${metadata.name}`
      const active = [...all.values()].filter(({ status }) => status === running)
      const waiting = [...all.values()].filter(({ spec, status }) => spec.suspend !== true && !status?.phase)
      const sorted = waiting.toSorted((a, b) => (place(a) < place(b) ? -1 : 1))
      assert.deepEqual(
        quota.admissible(max),
        sorted.slice(0, Math.max(0, max - active.length)).map(({ metadata }) => metadata.name),
      )
      for (const [at, session] of sorted.entries()) assert.equal(quota.hasRoom(session, max), active.length + at < max)
    }),
  )
})

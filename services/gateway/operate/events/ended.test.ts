import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { EndedSessions } from './ended.ts'

function setUp(count: number) {
  const clock = new TestClock()
  const sessions = Array.from({ length: count }, (_, at) => ({
    ...{ namespace: 'shop', agent: 'buyer', user: null },
    session: `s${at}`,
  }))
  const refused = new Set<string>()
  const reported: string[] = []
  let looks = 0
  const ended = new EndedSessions({
    clock,
    sessions: () => {
      looks++
      return sessions
    },
    hasEnded: ({ session }) => refused.has(session),
    report: ({ session }) => void reported.push(session),
  })
  const change = async (edit: () => void) => {
    edit()
    ended.changed()
    await clock.advance(1_000)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { clock, refused, reported, ended, change, looks: () => looks }
}

test('a session is reported once when it ends, and again after its revocation was lifted', async () => {
  const { refused, reported, change } = setUp(3)
  await change(() => refused.add('s1'))
  await change(() => refused.add('s2'))
  assert.deepEqual(reported, ['s1', 's2'])
  await change(() => refused.delete('s1'))
  assert.deepEqual(reported, ['s1', 's2'])
  await change(() => refused.add('s1'))
  assert.deepEqual(reported, ['s1', 's2', 's1'])
})

test('many changes within a second cost one walk over the sessions, and none follows the close', async () => {
  const { clock, refused, reported, ended, change, looks } = setUp(1)
  await change(() => {
    for (let n = 0; n < 10_000; n++) ended.changed()
  })
  assert.equal(looks(), 1)
  refused.add('s0')
  ended.changed()
  ended.close()
  await clock.advance(5_000)
  ended.changed()
  await clock.advance(5_000)
  assert.deepEqual([looks(), reported], [1, []])
})

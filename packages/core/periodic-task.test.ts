import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from './clock.ts'
import { PeriodicTask } from './periodic-task.ts'

test('runs follow one another and never overlap; a failed run is reported and does not stop the task', async () => {
  const clock = new TestClock()
  const begun: PromiseWithResolvers<void>[] = []
  const faults: unknown[] = []
  const job = () => {
    const round = Promise.withResolvers<void>()
    begun.push(round)
    return round.promise
  }
  const rounds = new PeriodicTask({ clock, everyMs: 1000, job, onFault: (error) => faults.push(error) })
  const first = rounds.now()
  clock.advance(3000)
  assert.equal(rounds.now(), first)
  assert.equal(begun.length, 1)
  begun[0]?.reject(new Error('no'))
  await first
  assert.match(String(faults), /no/)
  clock.advance(1000)
  assert.equal(begun.length, 2)
  let isClosed = false
  const closing = rounds.close().then(() => {
    isClosed = true
  })
  await Promise.resolve()
  assert.equal(isClosed, false)
  begun[1]?.resolve()
  await closing
  clock.advance(10_000)
  assert.equal(begun.length, 2)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock, TestClock } from './index.ts'

test('timers fire in order of their time while a test clock advances', async () => {
  const clock = new TestClock(1000)
  const fired: string[] = []
  clock.after(20, () => fired.push(`late ${clock.now()}`))
  clock.after(10, () => fired.push(`early ${clock.now()}`))
  const stop = clock.every(8, () => fired.push(`each ${clock.now()}`))
  await clock.advance(20)
  stop()
  await clock.advance(100)
  assert.deepEqual(fired, ['each 1008', 'early 1010', 'each 1016', 'late 1020'])
  assert.equal(clock.monotonic(), 120)
})

test('a cancelled timer never fires, and one set by another still does', async () => {
  const clock = new TestClock()
  const fired: string[] = []
  clock.after(5, () => fired.push('cancelled'))()
  clock.after(5, () => clock.after(5, () => fired.push('chained')))
  await clock.advance(10)
  assert.deepEqual(fired, ['chained'])
})

test('promises that a timer settles run before the next timer', async () => {
  const clock = new TestClock()
  const order: string[] = []
  clock.after(1, () => void Promise.resolve().then(() => order.push('promise')))
  clock.after(2, () => order.push('second'))
  await clock.advance(2)
  assert.deepEqual(order, ['promise', 'second'])
})

test('the system clock fires late, can be cancelled, and never goes back', async () => {
  let cancelledFired = false
  systemClock.after(1, () => {
    cancelledFired = true
  })()
  const before = systemClock.monotonic()
  const ticks = await new Promise<number>((resolve) => {
    let seen = 0
    const keepAlive = setTimeout(() => resolve(-1), 5000)
    const stop = systemClock.every(1, () => {
      if (++seen < 2) return
      stop()
      clearTimeout(keepAlive)
      resolve(seen)
    })
  })
  assert.equal(ticks, 2)
  assert.ok(systemClock.monotonic() > before)
  assert.equal(cancelledFired, false)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { EndpointRates } from './rates.ts'

test('an endpoint is asked so often a minute, each by its own count, and again in the next minute', async () => {
  const clock = new TestClock()
  const rates = new EndpointRates(clock)
  const two = { key: 'two', requestsPerMinute: 2 }
  const one = { key: 'one', requestsPerMinute: 1 }
  await clock.advance(15_000)
  assert.deepEqual([rates.take(two), rates.take(two), rates.take(two), rates.wait(two)], [0, 0, 45_000, 45_000])
  assert.deepEqual([rates.wait(one), rates.take(one), rates.take(one)], [0, 0, 45_000])
  await clock.advance(44_999)
  assert.equal(rates.take(two), 1)
  await clock.advance(1)
  assert.deepEqual([rates.take(two), rates.take(two), rates.take(two)], [0, 0, 60_000])
})

test('an endpoint without a limit is asked as often as anybody likes', () => {
  const rates = new EndpointRates(new TestClock())
  const free = { key: 'free', requestsPerMinute: null }
  for (let at = 0; at < 1000; at++) assert.equal(rates.take(free), 0)
})

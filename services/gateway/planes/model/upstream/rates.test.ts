import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { LocalLimits } from '@plat/state'
import type { Denial } from '../../../call/index.ts'
import { testIdentity } from '../../../call/testing/identity.ts'
import { EndpointRates } from './rates.ts'

const two = { key: 'r/two', route: 'r', requestsPerMinute: 2 }
const one = { key: 'r/one', route: 'r', requestsPerMinute: 1 }

const callOf = (id: string) => ({ id, facts: { identity: testIdentity } })

/** Milliseconds until the next request may be sent, as a refusal says; 0: it was counted. */
const waitOf = (counted: Denial | null | Promise<unknown>) =>
  counted instanceof Promise ? assert.fail('not at once') : (counted?.retryAfterMs ?? 0)

test('replicas count the requests of an endpoint together, each endpoint by its own count, and again in the next minute', async () => {
  const clock = new TestClock()
  const limits = new LocalLimits({ clock })
  const [here, there] = [new EndpointRates(clock, limits), new EndpointRates(clock, limits)]
  await clock.advance(15_000)
  assert.deepEqual([waitOf(here.take(two, callOf('a'))), waitOf(there.take(two, callOf('b')))], [0, 0])
  assert.deepEqual([waitOf(here.take(two, callOf('a'))), waitOf(there.take(two, callOf('c')))], [45_000, 45_000])
  assert.deepEqual([here.wait(two), here.wait(one), waitOf(here.take(one, callOf('a')))], [45_000, 0, 0])
  assert.equal(there.take(one, callOf('d')) instanceof Promise ? null : 'refused', 'refused')
  await clock.advance(44_999)
  assert.equal(waitOf(here.take(two, callOf('e'))), 1)
  await clock.advance(1)
  assert.deepEqual([waitOf(here.take(two, callOf('f'))), waitOf(there.take(two, callOf('f')))], [0, 0])
  assert.equal(waitOf(here.take(two, callOf('f'))), 60_000)
})

test('an endpoint without a limit is never counted', () => {
  const rates = new EndpointRates(new TestClock(), { take: () => assert.fail('counted') })
  for (let at = 0; at < 1000; at++) assert.equal(rates.take({ ...one, requestsPerMinute: null }, callOf('a')), null)
})

test('requests that cannot be counted are refused', async () => {
  const broken = [
    () => {
      throw new Error('gone')
    },
    () => Promise.reject(new Error('gone')),
  ]
  for (const take of broken) {
    const refused = await new EndpointRates(new TestClock(), { take }).take(one, callOf('a'))
    assert.equal(refused?.code, 'state_unavailable')
  }
})

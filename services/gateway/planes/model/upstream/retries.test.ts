import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { endpointAt } from '../testing.ts'
import { Retries, RetryBudget } from './retries.ts'

const policy = { attempts: 3, budgetPercent: 20, maxWaitMs: 10_000 }
const endpoint = endpointAt('http://one.example/v1')
const open = { aborted: false, reason: undefined, addEventListener() {}, removeEventListener() {} }

function retriesWith(backoffMs = 100, options: Partial<typeof policy> = {}) {
  const clock = new TestClock()
  const results: string[] = []
  const budget = new RetryBudget(clock)
  const call = () =>
    new Retries({
      route: 'r',
      policy: { ...policy, ...options },
      budget,
      backoff: { pauseMs: (_, after = 0) => after + backoffMs },
      clock,
      metrics: { retried: (_, result) => void results.push(result) },
    })
  return { clock, budget, call, results }
}

test('a share of the calls of the last ten seconds may be retried, and three always', async () => {
  const clock = new TestClock()
  const budget = new RetryBudget(clock)
  const granted = () => Array.from({ length: 20 }, () => budget.take(20)).filter(Boolean).length
  assert.equal(granted(), 3)
  for (let count = 0; count < 30; count++) budget.called()
  assert.equal(granted(), 3, '20 percent of 30 calls, of which three are used')
  await clock.advance(10_000)
  assert.equal(granted(), 3, 'calls and retries are forgotten')
  await clock.advance(3_600_000)
  for (let count = 0; count < 50; count++) budget.called()
  await clock.advance(5_000)
  for (let count = 0; count < 50; count++) budget.called()
  assert.equal(granted(), 20)
})

test('a retry waits for the time that the provider stated, and one that states too long a time gets none', async () => {
  const { clock, call, results } = retriesWith()
  const retries = call()
  retries.note(endpoint, 2_000)
  assert.equal(retries.grant(), true)
  let ready: unknown = null
  const next = retries.next(open).then((endpoints) => {
    ready = endpoints
  })
  await clock.advance(2_099)
  assert.equal(ready, null)
  await clock.advance(1)
  await next
  assert.deepEqual([ready, results], [[endpoint], ['sent']])
  assert.equal(retries.grant(), false, 'no endpoint refused the request since')
  retries.note(endpoint, 10_000)
  assert.deepEqual([retries.grant(), results], [false, ['sent', 'wait']])
})

test('an endpoint that stated a longer time than another is left out', async () => {
  const { clock, call } = retriesWith()
  const retries = call()
  const other = endpointAt('http://two.example/v1')
  retries.note(endpoint, 5_000)
  retries.note(other, 0)
  assert.equal(retries.grant(), true)
  const next = retries.next(open)
  await clock.advance(100)
  assert.deepEqual(await next, [other])
})

test('the attempts of a call are limited, and the budget is that of all calls of the route', async () => {
  const { clock, call, results } = retriesWith(0, { attempts: 1 })
  for (let count = 0; count < 4; count++) {
    const retries = call()
    retries.note(endpoint, 0)
    if (retries.grant()) {
      const next = retries.next(open)
      await clock.advance(0)
      await next
    }
    retries.note(endpoint, 0)
    if (count < 3) assert.equal(retries.grant(), false)
  }
  assert.deepEqual(results.slice(0, 4), ['sent', 'sent', 'sent', 'budget'])
})

test('a call that is aborted while it waits is not sent again', async () => {
  const { call, results } = retriesWith(1_000)
  const retries = call()
  retries.note(endpoint, 0)
  assert.equal(retries.grant(), true)
  const controller = new AbortController()
  const signal = Object.assign(controller.signal, {})
  const next = retries.next(signal)
  controller.abort()
  assert.deepEqual([await next, results], [[], []])
})

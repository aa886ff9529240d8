import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemIds, TestClock } from '@plat/core'
import { Balancer, type Weighted } from './balance.ts'

const KIND = 'chat/completions'

function balancer() {
  const clock = new TestClock()
  return { clock, balancer: new Balancer({ clock, ids: systemIds(clock) }) }
}

const at = (key: string, weight = 1): Weighted => ({ key, weight })

test('endpoints get their shares by weight within each round, and none that has weight 0', () => {
  const { balancer: one } = balancer()
  const endpoints = [at('a', 5), at('b', 1), at('c', 2), at('spare', 0)]
  const first = Array.from({ length: 16 }, () => one.order(endpoints, 'weight', KIND)[0]?.key)
  const counts = Object.fromEntries(['a', 'b', 'c', 'spare'].map((key) => [key, first.filter((x) => x === key).length]))
  assert.deepEqual(counts, { a: 10, b: 2, c: 4, spare: 0 })
  assert.doesNotMatch(first.join(''), /aaaa/, 'the calls of an endpoint are spread')
  assert.equal(one.order(endpoints, 'weight', KIND).at(-1)?.key, 'spare')
  assert.deepEqual(one.order([at('spare', 0), at('other', 0)], 'weight', KIND), [at('spare', 0), at('other', 0)])
})

test('without the endpoint that cannot serve calls the others share its calls by their weights', () => {
  const { balancer: one } = balancer()
  const first = Array.from({ length: 9 }, () => one.order([at('b', 1), at('c', 2)], 'weight', KIND)[0]?.key)
  assert.equal(first.filter((key) => key === 'c').length, 6)
})

test('the endpoint with the lower latency comes first, until the measurement of the other is old', async () => {
  const { clock, balancer: one } = balancer()
  const [fast, slow] = [at('fast'), at('slow')]
  for (const [endpoint, ms] of [[fast, 100] as const, [slow, 400] as const]) {
    one.started(endpoint, KIND)
    one.ended(endpoint, KIND, ms)
  }
  const first = () => one.order([slow, fast], 'latency', KIND)[0]?.key
  for (let count = 0; count < 20; count++) assert.equal(first(), 'fast')
  assert.equal(one.order([slow, fast], 'latency', 'other')[0] !== undefined, true)
  await clock.advance(30_000)
  one.ended(fast, KIND, 300)
  assert.equal(first(), 'slow')
})

test('calls without a response, failures and a lower weight make an endpoint later', () => {
  const endings: readonly ((one: Balancer) => void)[] = [
    (one) => {
      for (let count = 0; count < 2; count++) one.started(at('a'), KIND)
    },
    (one) => one.ended(at('a'), KIND, 'failed'),
  ]
  for (const end of endings) {
    const { balancer: one } = balancer()
    one.ended(at('a'), KIND, 100)
    one.ended(at('b'), KIND, 150)
    assert.equal(one.order([at('b'), at('a')], 'latency', KIND)[0]?.key, 'a')
    assert.equal(one.order([at('b', 2), at('a')], 'latency', KIND)[0]?.key, 'b', 'a heavier one')
    end(one)
    assert.equal(one.order([at('a'), at('b')], 'latency', KIND)[0]?.key, 'b')
  }
})

test('an endpoint that is not measured gets one call at a time, and an aborted call measures nothing', () => {
  const { balancer: one } = balancer()
  const [known, fresh] = [at('known'), at('new')]
  one.ended(known, KIND, 10)
  assert.equal(one.order([known, fresh], 'latency', KIND)[0]?.key, 'new')
  one.started(fresh, KIND)
  assert.equal(one.order([known, fresh], 'latency', KIND)[0]?.key, 'known')
  one.ended(fresh, KIND, null)
  assert.equal(one.order([known, fresh], 'latency', KIND)[0]?.key, 'new')
})

test('of several endpoints the best two of a random pair are found, and removed ones are forgotten', () => {
  const { balancer: one } = balancer()
  const endpoints = [at('a'), at('b'), at('c')]
  for (const [index, endpoint] of endpoints.entries()) one.ended(endpoint, KIND, 100 * (index + 1))
  const first = new Set(Array.from({ length: 200 }, () => one.order(endpoints, 'latency', KIND)[0]?.key))
  assert.deepEqual([...first].toSorted(), ['a', 'b'], 'the slowest of three is in no pair the faster')
  one.keep(new Set(['b', 'c']))
  assert.equal(one.order(endpoints, 'latency', KIND).length, 3)
  one.keep(new Set())
  assert.deepEqual(
    new Set(Array.from({ length: 200 }, () => one.order(endpoints, 'latency', KIND)[0]?.key)).size > 1,
    true,
  )
})

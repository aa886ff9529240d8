import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Holders } from './holders.ts'
import { type PoolBound, poolsOf, SharedPool, watchedPool } from './shared-pool.ts'
import { type PoolRow, poolTable } from './table.ts'

test('a caller at its share is refused while another is served', () => {
  const refused: PoolBound[] = []
  const pool = new SharedPool({ name: 'live_calls', total: 5, shares: [3], onRefused: (bound) => refused.push(bound) })
  assert.deepEqual([pool.acquire('a', 3), pool.acquire('a'), pool.acquire('b', 2)], [null, 'share', null])
  assert.equal(pool.acquire('c'), 'total')
  assert.deepEqual(refused, ['share', 'total'])
  pool.release('a')
  assert.equal(pool.acquire('c'), null)
})

test('a pool never exceeds its limits, and forgets callers that hold nothing', () => {
  const step = fc.record({ caller: fc.constantFrom('a', 'b', 'c'), units: fc.integer({ min: 1, max: 4 }) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const pool = new SharedPool({ name: 'live_calls', total: 8, shares: [5] })
      const held: { caller: string; units: number }[] = []
      for (const one of steps) {
        if (pool.acquire(one.caller, one.units) === null) held.push(one)
        assert.ok(pool.used <= 8 && pool.usedBy(one.caller) <= 5)
      }
      for (const { caller, units } of held) pool.release(caller, units)
      assert.deepEqual([pool.used, pool.callers], [0, 0])
    }),
  )
})

test('callers without units are kept only as long as there are few', () => {
  const holders = new Holders(10)
  for (let n = 0; n < 1_000; n++) {
    holders.change(`caller-${n}`, 2)
    assert.equal(holders.unitsOf(`caller-${n}`), 2)
    holders.change(`caller-${n}`, -3)
    assert.deepEqual([holders.unitsOf(`caller-${n}`), holders.size], [0, 0])
    assert.ok(holders.kept <= 65, `${holders.kept} are kept`)
  }
  for (let n = 0; n < 200; n++) holders.change(`caller-${n}`, 1)
  for (let n = 0; n < 100; n++) holders.change(`caller-${n}`, -1)
  assert.deepEqual([holders.size, holders.unitsOf('caller-5'), holders.unitsOf('caller-150')], [100, 0, 1])
  assert.ok(holders.kept <= 200)
  for (let n = 0; n < 200; n++) holders.change(`caller-${n}`, 1)
  assert.deepEqual([holders.size, holders.unitsOf('caller-5'), holders.unitsOf('caller-150')], [200, 1, 2])
})

test('a narrower caller has a share within that of a wider one, and a refusal changes neither', () => {
  const pool = new SharedPool({ name: 'memory_bytes', total: 20, shares: [10, 4] })
  assert.equal(pool.acquire(['a', 'a/1'], 4), null)
  assert.equal(pool.acquire(['a', 'a/1']), 'share')
  assert.equal(pool.acquire(['a', 'a/2'], 4), null)
  assert.equal(pool.acquire(['a', 'a/3'], 4), 'share')
  assert.deepEqual([pool.usedBy('a'), pool.usedBy('a/3', 1), pool.used], [8, 0, 8])
  assert.equal(pool.acquire(['b', 'b/1'], 4), null)
  for (const one of ['a/1', 'a/2']) pool.release(['a', one], 4)
  pool.release(['b', 'b/1'], 4)
  assert.deepEqual([pool.used, pool.callers], [0, 0])
})

test('an observer of a pool sees its usage and each refusal', () => {
  const refused: PoolBound[] = []
  let used = () => -1
  const observer = {
    watch: (read: () => number) => {
      used = read
    },
    refused: (bound: PoolBound) => void refused.push(bound),
  }
  const pool = watchedPool({ name: 'live_calls', shares: [2], observer })
  pool.acquire('a', 2)
  assert.equal(pool.acquire('a'), 'share')
  assert.deepEqual([used(), refused], [2, ['share']])
})

test('every share of the table is below its total, and a narrower one below the wider', () => {
  for (const [name, { total, shares }] of Object.entries<PoolRow>(poolTable)) {
    const bounds = [total, ...shares.map(({ max }) => max)]
    for (const [at, bound] of bounds.entries()) assert.ok(at === 0 || bound < (bounds[at - 1] ?? 0), name)
  }
  assert.ok(poolsOf('gateway').includes('live_calls'))
  assert.deepEqual(new Set(poolsOf('broker')).has('connections'), true)
})

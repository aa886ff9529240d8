import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type PoolBound, SharedPool } from './shared-pool.ts'

test('a caller that has exhausted its share is refused while another is served', () => {
  const refused: PoolBound[] = []
  const pool = new SharedPool({ total: 5, share: 3, onRefused: (bound) => refused.push(bound) })
  assert.deepEqual([pool.acquire('a', 3), pool.acquire('a'), pool.acquire('b', 2)], [null, 'share', null])
  assert.equal(pool.acquire('c'), 'total')
  assert.deepEqual(refused, ['share', 'total'])
  pool.release('a')
  assert.equal(pool.acquire('c'), null)
})

test('a pool never exceeds its bounds, and forgets callers that hold nothing', () => {
  const step = fc.record({ caller: fc.constantFrom('a', 'b', 'c'), units: fc.integer({ min: 1, max: 4 }) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const pool = new SharedPool({ total: 8, share: 5 })
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

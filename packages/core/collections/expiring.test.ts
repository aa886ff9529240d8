import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { TestClock } from '../clock.ts'
import { SharedPool } from '../pools/shared-pool.ts'
import { ExpiringMap } from './expiring.ts'

function setUp(cap = 3) {
  const clock = new TestClock()
  return { clock, map: new ExpiringMap<string>({ clock, cap }), at: (ms: number) => clock.now() + ms }
}

test('an entry exists until its end, exclusive', async () => {
  const { clock, map, at } = setUp()
  assert.equal(map.insert('a', 'x', at(10)), 'inserted')
  await clock.advance(9)
  assert.equal(map.get('a'), 'x')
  await clock.advance(1)
  assert.equal(map.get('a'), null)
  assert.equal(map.insert('a', 'y', at(10)), 'inserted')
})

test('an insertion never overwrites, and an entry can be removed once', () => {
  const { map, at } = setUp()
  map.insert('a', 'x', at(10))
  assert.equal(map.insert('a', 'y', at(10)), 'taken')
  assert.deepEqual([map.take('a'), map.take('a')], ['x', null])
})

test('a full map refuses while its entries live, and accepts when any of them has expired', async () => {
  const { clock, map, at } = setUp(2)
  map.insert('long', 'x', at(5000))
  map.insert('short', 'x', at(1000))
  assert.equal(map.insert('c', 'x', at(5000)), 'full')
  await clock.advance(1000)
  assert.equal(map.insert('c', 'x', at(5000)), 'inserted')
  assert.equal(map.size, 2)
  assert.equal(map.get('long'), 'x')
})

test('expired entries at the head are removed before the cap is reached', async () => {
  const { clock, map, at } = setUp(1000)
  for (let i = 0; i < 100; i++) map.insert(`k${i}`, 'x', at(10))
  await clock.advance(10)
  map.insert('new', 'x', at(10))
  assert.equal(map.size, 1)
})

test('after any operations the map holds exactly the entries that have not expired', async () => {
  const step = fc.record({
    key: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
    lifeMs: fc.integer({ min: 0, max: 20 }),
    passMs: fc.integer({ min: 0, max: 5 }),
    act: fc.constantFrom('insert', 'insert', 'insert', 'get', 'take'),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const { clock, map, at } = setUp(4)
      const expected = new Map<string, number>()
      for (const { key, lifeMs, passMs, act } of steps) {
        await clock.advance(passMs)
        for (const [known, until] of expected) if (clock.now() >= until) expected.delete(known)
        const isKnown = expected.has(key)
        if (act === 'get') assert.equal(map.get(key), isKnown ? key : null)
        else if (act === 'take') {
          assert.equal(map.take(key), isKnown ? key : null)
          expected.delete(key)
        } else {
          assert.equal(map.insert(key, key, at(lifeMs)), isKnown ? 'taken' : expected.size >= 4 ? 'full' : 'inserted')
          if (!isKnown && expected.size < 4) expected.set(key, at(lifeMs))
        }
      }
    }),
  )
})

test('a caller at its share is refused while another is served, and has room again when its entries end', async () => {
  const clock = new TestClock()
  const pool = new SharedPool({ name: 'proofs', total: 5, shares: [2] })
  const map = new ExpiringMap<string>({ clock, cap: pool })
  const insert = (key: string, ms: number, caller: string) => map.insert(key, 'x', clock.now() + ms, caller)
  assert.deepEqual(
    [insert('1', 10, 'a'), insert('2', 1000, 'a'), insert('3', 10, 'a')],
    ['inserted', 'inserted', 'full'],
  )
  assert.deepEqual([map.isFull('a'), map.isFull('b'), insert('4', 10, 'b')], [true, false, 'inserted'])
  await clock.advance(10)
  assert.equal(insert('3', 1000, 'a'), 'inserted')
  map.take('2')
  assert.deepEqual([map.isFull('a'), pool.used, pool.callers], [false, 1, 1])
})

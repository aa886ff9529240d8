import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '../clock.ts'
import { ExpiringMap } from './expiring.ts'

function setUp(cap = 3) {
  const clock = new TestClock()
  return { clock, map: new ExpiringMap<string>({ clock, cap }), at: (ms: number) => clock.now() + ms }
}

test('an entry is there until its end, and not at it', async () => {
  const { clock, map, at } = setUp()
  assert.equal(map.insert('a', 'x', at(10)), 'inserted')
  await clock.advance(9)
  assert.equal(map.get('a'), 'x')
  await clock.advance(1)
  assert.equal(map.get('a'), null)
  assert.equal(map.insert('a', 'y', at(10)), 'inserted')
})

test('an insertion never overwrites, and an entry is taken once', () => {
  const { map, at } = setUp()
  map.insert('a', 'x', at(10))
  assert.equal(map.insert('a', 'y', at(10)), 'taken')
  assert.deepEqual([map.take('a'), map.take('a')], ['x', null])
})

test('a full map refuses while its entries live, and makes room when any of them has expired', async () => {
  const { clock, map, at } = setUp(2)
  map.insert('long', 'x', at(5000))
  map.insert('short', 'x', at(1000))
  assert.equal(map.insert('c', 'x', at(5000)), 'full')
  await clock.advance(1000)
  assert.equal(map.insert('c', 'x', at(5000)), 'inserted')
  assert.equal(map.size, 2)
  assert.equal(map.get('long'), 'x')
})

test('what has expired at the head is dropped without waiting for the cap', async () => {
  const { clock, map, at } = setUp(1000)
  for (let i = 0; i < 100; i++) map.insert(`k${i}`, 'x', at(10))
  await clock.advance(10)
  map.insert('new', 'x', at(10))
  assert.equal(map.size, 1)
})

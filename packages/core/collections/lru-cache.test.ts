import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LinkedMap } from './linked-map.ts'
import { LruCache } from './lru-cache.ts'

const key = fc.constantFrom('a', 'b', 'c', 'd')
const step = fc.oneof(
  fc.record({ do: fc.constant('set' as const), key, value: fc.nat() }),
  fc.record({ do: fc.constantFrom('delete' as const, 'renew' as const), key }),
)

test('a linked map has the entries and the order of a Map', () => {
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const linked = new LinkedMap<string, number>()
      const plain = new Map<string, number>()
      for (const one of steps) {
        const before = plain.get(one.key)
        if (one.do !== 'set')
          assert.equal(one.do === 'renew' || linked.delete(one.key), one.do === 'renew' || plain.delete(one.key))
        if (one.do === 'set') for (const map of [linked, plain]) map.set(one.key, one.value)
        if (one.do !== 'renew') continue
        linked.renew(one.key)
        plain.delete(one.key)
        if (before !== undefined) plain.set(one.key, before)
      }
      assert.deepEqual([...linked], [...plain])
      assert.deepEqual([...linked.keys()], [...plain.keys()])
      assert.deepEqual(linked.oldest, [...plain][0] ?? null)
      assert.equal(linked.size, plain.size)
    }),
  )
})

test('entries deleted during iteration of a linked map are skipped', () => {
  const map = new LinkedMap<string, number>()
  for (const name of ['a', 'b', 'c', 'd']) map.set(name, 1)
  const read: string[] = []
  for (const name of map.keys()) {
    read.push(name)
    map.delete(name)
    map.delete('c')
  }
  assert.deepEqual(read, ['a', 'b', 'd'])
})

test('the least recently used entry is evicted, and the owner is notified', () => {
  const evicted: string[] = []
  const cache = new LruCache<string, number>({
    maxEntries: 2,
    onEvicted: (value, name) => evicted.push(`${name}${value}`),
  })
  cache.set('a', 1)
  cache.set('b', 2)
  assert.equal(cache.get('a'), 1)
  cache.peek('b')
  cache.set('c', 3)
  assert.deepEqual(evicted, ['b2'])
  cache.set('a', 4)
  cache.set('d', 5)
  assert.deepEqual(
    [...cache],
    [
      ['a', 4],
      ['d', 5],
    ],
  )
})

test('a heavy entry evicts others, and one above the limit is not stored', () => {
  const cache = new LruCache<string, string>({ maxEntries: 9, maxWeight: 10, weigh: (text) => text.length })
  cache.set('a', 'xxxx')
  cache.set('b', 'xxxx')
  cache.set('a', 'x')
  cache.set('c', 'xxxxx')
  assert.deepEqual([...cache.keys()], ['b', 'a', 'c'])
  cache.set('d', 'xx')
  assert.deepEqual([...cache.keys()], ['a', 'c', 'd'])
  cache.set('e', 'x'.repeat(11))
  assert.equal(cache.size, 0)
  cache.set('f', 'x'.repeat(10))
  assert.equal(cache.size, 1)
})

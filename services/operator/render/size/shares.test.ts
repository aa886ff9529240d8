import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Piece, piecesOverShare } from './shares.ts'

const piece = (namespace: string, name: string, bytes: number): Piece => ({
  key: `${namespace}/${name}`,
  namespace,
  bytes,
})

test('nothing is left out of what fits, and of what does not only the largest of the namespace above its share', () => {
  const small = [piece('a', '1', 10), piece('b', '1', 20)]
  assert.deepEqual([...piecesOverShare(small, 30)], [])
  assert.deepEqual([...piecesOverShare([...small, piece('c', 'big', 1000), piece('c', 'small', 5)], 100)], ['c/big'])
  // Space that others do not use is available.
  assert.deepEqual([...piecesOverShare([piece('a', '1', 10), piece('b', '1', 85), piece('b', '2', 10)], 100)], ['b/1'])
})

test('the remaining pieces always fit, and a namespace below an even share loses nothing', () => {
  const pieces = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c', 'd'), fc.nat(100)), { maxLength: 30 })
  fc.assert(
    fc.property(pieces, fc.nat(1000), (drawn, limit) => {
      const all = drawn.map(([namespace, bytes], index) => piece(namespace, String(index), bytes))
      const over = piecesOverShare(all, limit)
      const remaining = all.filter(({ key }) => !over.has(key))
      assert.ok(remaining.reduce((sum, { bytes }) => sum + bytes, 0) <= limit)
      const owners = Map.groupBy(all, ({ namespace }) => namespace)
      for (const own of owners.values()) {
        if (own.reduce((sum, { bytes }) => sum + bytes, 0) > Math.floor(limit / owners.size)) continue
        assert.ok(own.every(({ key }) => !over.has(key)))
      }
    }),
  )
})

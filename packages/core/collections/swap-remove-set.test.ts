import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { NOWHERE, SwapRemoveSet } from './swap-remove-set.ts'

test('a SwapRemoveSet equals a Set after any operations', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.boolean(), fc.nat(9))), (steps) => {
      const members = Array.from({ length: 10 }, (_, id) => ({ id, place: NOWHERE }))
      const swapped = new SwapRemoveSet<(typeof members)[number]>()
      const set = new Set<number>()
      for (const [joins, id] of steps) {
        const member = members[id]
        assert.ok(member)
        if (joins && !set.has(id)) swapped.add(member)
        if (!joins) swapped.delete(member)
        if (joins) set.add(id)
        else set.delete(id)
        assert.equal(swapped.size, set.size)
        assert.deepEqual([...swapped].map((one) => one.id).sort(), [...set].sort())
      }
    }),
  )
})

test('a member that leaves during iteration does not hide another one', () => {
  const swapped = new SwapRemoveSet<{ place: number }>()
  for (let count = 0; count < 5; count++) swapped.add({ place: NOWHERE })
  let requested = 0
  for (const member of swapped) {
    requested++
    swapped.delete(member)
  }
  assert.deepEqual([requested, swapped.size], [5, 0])
})

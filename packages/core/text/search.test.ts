import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { searchFor } from './search.ts'

test('any text is found where the engine finds it, from any place on', () => {
  const text = (maxLength: number) =>
    fc.array(fc.constantFrom('a', 'b', 'ab', 'é', '\ud83d'), { maxLength }).map((all) => all.join(''))
  const around = fc.tuple(text(30), text(60), fc.nat(8), text(10))
  fc.assert(
    fc.property(around, fc.nat(150), ([wanted, before, times, after], from) => {
      const read = before + wanted.slice(0, 20) + wanted.repeat(times) + after
      assert.equal(searchFor(wanted)(read, from), read.indexOf(wanted, from))
      assert.equal(searchFor(wanted)(read), read.indexOf(wanted))
    }),
    { numRuns: 3000 },
  )
})

test('a long text that begins again and again is compared once for each character', () => {
  // With `indexOf`, this takes minutes.
  const wanted = `${'a'.repeat(50_000)}b${'a'.repeat(50_000)}`
  const read = 'a'.repeat(1_000_000)
  assert.equal(searchFor(wanted)(read), -1)
  assert.equal(searchFor(wanted)(read + wanted), 1_000_000)
})

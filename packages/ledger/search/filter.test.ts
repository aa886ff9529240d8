import assert from 'node:assert/strict'
import { test } from 'node:test'
import { canonicalJson } from '@plat/core'
import fc from 'fast-check'
import { type RecordFilter, selectorOf } from './filter.ts'

const START = { hash: '0'.repeat(64), prev: '0'.repeat(64) }

/** Whether a filter selects a record, of which a line is read first. */
function selects(filter: RecordFilter, rec: Record<string, unknown>): boolean {
  const { matchesLine, matches } = selectorOf(filter)
  const line = Buffer.from(canonicalJson({ ...START, rec, seq: 1, v: 1 }))
  return matchesLine(line) && matches(rec)
}

test('long members and texts select what is equal to its end', () => {
  const long = `"é\\${'a'.repeat(300)}`
  assert.ok(selects({ session: long }, { session: long }))
  assert.ok(!selects({ session: long }, { session: `${long}b` }))
  assert.ok(!selects({ session: `${long}b` }, { session: `${long}c` }))
  assert.ok(selects({ text: `${long}b` }, { note: `x${long}${long}b` }))
  assert.ok(!selects({ text: `${long}b` }, { note: `${long}${long}` }))
})

test('a text of any length is found in a record exactly where a string contains it', () => {
  const part = fc.constantFrom('a', 'aaaaaaaaaaaaaaaa', 'b', '"', '\\', 'é', '\n')
  const text = fc.array(part, { minLength: 1, maxLength: 12 }).map((parts) => parts.join(''))
  fc.assert(
    fc.property(text, text, fc.boolean(), (wanted, other, isWithin) => {
      const note = isWithin ? other + wanted + other : other
      // Behind a backslash that is written twice, an escape may begin in its middle.
      fc.pre(!note.includes('\\') || isWithin)
      assert.equal(
        selects({ text: wanted }, { note }),
        JSON.stringify(note).includes(JSON.stringify(wanted).slice(1, -1)),
      )
    }),
  )
})

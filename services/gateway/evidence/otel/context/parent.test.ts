import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isChosen, readParent, writeParent } from './parent.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN = '00f067aa0ba902b7'

test('a traceparent is read in its version and later ones, and no other format', () => {
  const known = { traceId: TRACE, spanId: SPAN, flags: 1, state: 'a=b' }
  assert.deepEqual(readParent(`00-${TRACE}-${SPAN}-01`, 'a=b'), known)
  assert.deepEqual(readParent(`01-${TRACE}-${SPAN}-fd-more`, 'a=b'), known)
  assert.deepEqual(readParent(`00-${TRACE}-${SPAN}-02`, undefined), { ...known, flags: 2, state: '' })
  const wrong = [
    `00-${TRACE}-${SPAN}-01-more`,
    `ff-${TRACE}-${SPAN}-01`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-1`,
    `00-${TRACE}-${SPAN}`,
    `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`,
    '',
  ]
  for (const text of wrong) assert.equal(readParent(text, 'a=b'), null, text)
  assert.equal(readParent(undefined, 'a=b'), null)
})

test('an oversized or invalid tracestate is not propagated', () => {
  for (const state of ['x'.repeat(513), 'a=\u00e4', 'a\nb', ['a=b']]) {
    assert.equal(readParent(`00-${TRACE}-${SPAN}-01`, state)?.state, '')
  }
})

test('written headers read back the same', () => {
  const hex = (digits: number) =>
    fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: digits, maxLength: digits })
  fc.assert(
    fc.property(hex(32), hex(16), fc.integer({ min: 0, max: 3 }), (traceId, spanId, flags) => {
      fc.pre(/[^0]/.test(traceId) && /[^0]/.test(spanId))
      assert.deepEqual(readParent(writeParent({ traceId, spanId, flags }), ''), { traceId, spanId, flags, state: '' })
    }),
  )
})

test('the sampled share matches the ratio, and a larger ratio includes the traces of a smaller one', () => {
  // Shows D3.otel.sampleRatio.
  const ids = Array.from(
    { length: 1000 },
    (_, at) =>
      `${'f'.repeat(18)}${BigInt(Math.floor((at / 1000) * 2 ** 56))
        .toString(16)
        .padStart(14, '0')}`,
  )
  const chosen = (ratio: number) => new Set(ids.filter((id) => isChosen(id, ratio)))
  assert.deepEqual([chosen(0).size, chosen(0.25).size, chosen(1).size], [0, 250, 1000])
  assert.ok(chosen(0.1).isSubsetOf(chosen(0.25)))
})

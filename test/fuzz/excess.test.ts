import assert from 'node:assert/strict'
import { test } from 'node:test'
import { excessOf } from './excess.ts'
import type { Cost } from './measure.ts'

const MIB = 1024 * 1024
const YARDSTICK = { parseMs: 0, copyMs: 0, slack: 1 }

const cost = (changes: Partial<Cost>): Cost => ({ ms: 0, stretchMs: 0, heapBytes: 0, outsideBytes: 0, ...changes })

/** The report on the costs of a text of n and of 4n characters. */
const reported = (before: Partial<Cost>, after: Partial<Cost>, yardstick: Partial<typeof YARDSTICK> = {}) =>
  excessOf({ before: cost(before), after: cost(after) }, { ...YARDSTICK, ...yardstick })

test('a stretch of the event loop is reported beyond 20 ms and beyond three times JSON.parse', () => {
  const stretchMs = 50
  assert.equal(reported({}, { stretchMs }), 'an unbroken stretch of 50.0 ms, allowed are 20.0')
  assert.equal(reported({}, { stretchMs }, { parseMs: 15 }), 'an unbroken stretch of 50.0 ms, allowed are 45.0')
  assert.equal(reported({}, { stretchMs }, { parseMs: 17 }), null)
  assert.equal(reported({}, { stretchMs }, { slack: 3 }), null)
  assert.equal(reported({}, { stretchMs: 20 }), null)
})

test('time that grows faster than the text is reported once it is measurable', () => {
  assert.equal(reported({ ms: 6 }, { ms: 48 }), 'grows from 6.0 to 48.0 ms with four times the input')
  assert.equal(reported({ ms: 8 }, { ms: 48 }), null)
  assert.equal(reported({ ms: 1 }, { ms: 8 }), null)
  assert.equal(reported({ ms: 6 }, { ms: 48 }, { parseMs: 16 }), null)
})

test('three copies of the text are not reported, whatever new memory costs', () => {
  assert.equal(reported({ ms: 0.6 }, { ms: 25.6 }, { copyMs: 8 }), null)
  assert.match(String(reported({ ms: 0.6 }, { ms: 28.6 }, { copyMs: 8 })), /grows from/)
})

test('memory that grows faster than the text is reported, on the heap and outside of it', () => {
  const before = { heapBytes: MIB / 2, outsideBytes: MIB / 2 }
  assert.equal(reported(before, { heapBytes: 3 * MIB, outsideBytes: 3 * MIB }), null)
  assert.match(String(reported(before, { heapBytes: 6 * MIB, outsideBytes: MIB })), /^allocates 1048576 bytes and/)
  assert.match(String(reported(before, { heapBytes: MIB, outsideBytes: 6 * MIB })), /^allocates 1048576 bytes and/)
  assert.equal(reported({}, { heapBytes: MIB }), null)
})

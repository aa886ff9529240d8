import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { celFromJson } from './values.ts'

test('a parsed message and its bytes give the same values', () => {
  const text = fc.oneof(
    fc.json({ maxDepth: 4 }),
    fc.constantFrom(
      'null',
      '[[1.0]]',
      '{"a":{"b":[true,-0]}}',
      '9007199254740993',
      '{"a":12345678901234567890,"b":"x"}',
    ),
  )
  fc.assert(
    fc.property(text, (json) => {
      const bytes = Buffer.from(json)
      assert.deepEqual(celFromJson(bytes, JSON.parse(json)), celFromJson(bytes))
    }),
    { numRuns: 1000 },
  )
})

test('an int64 that no double represents stays exact, with any parser', () => {
  const json = '{"list":[{"id":9007199254740993}]}'
  const expected = new Map([['list', [new Map([['id', 9007199254740993n]])]]])
  assert.deepEqual(celFromJson(Buffer.from(json), JSON.parse(json)), expected)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { diffLines } from './diff.ts'
import { jsonRows, rowText } from './json-rows.ts'

const lines = (text: string) => jsonRows(text).map(rowText)
const squeezed = (text: string) => text.replaceAll(/\s/g, '')
const displayed = (text: string) =>
  squeezed(
    jsonRows(text)
      .map(({ pieces }) => pieces.map((piece) => piece.text).join(''))
      .join(''),
  )

test('each member has a line, and numbers, escapes and repeated names stay as they are written', () => {
  const text = '{"a":9007199254740993,"a":1E400,"b":[{},[],"\\u202e\\"x"],"c":null}'
  assert.deepEqual(lines(text), [
    '{',
    '  "a": 9007199254740993,',
    '  "a": 1E400,',
    '  "b": [',
    '    {},',
    '    [],',
    '    "\\u202e\\"x"',
    '  ],',
    '  "c": null',
    '}',
  ])
})

test('nothing of a text is left out, whether it is JSON or not', () => {
  fc.assert(fc.property(fc.json({ maxDepth: 6 }), (text) => assert.equal(displayed(text), squeezed(text))))
  const broken = fc.string({ unit: fc.constantFrom('"', '\\', '{', '}', '[', ']', ',', ':', 'a', '1', ' ', '😀') })
  fc.assert(fc.property(broken, (text) => assert.equal(displayed(text), squeezed(text))))
})

test('a long string is broken into rows, 100,000 levels do not overflow, and a text that was cut is displayed', () => {
  const rows = jsonRows(`{"a":"${'x'.repeat(1 << 20)}"}`)
  assert.ok(rows.length > 10_000 && rows.every(({ pieces }) => pieces.every(({ text }) => text.length <= 97)))
  assert.equal(jsonRows('['.repeat(100_000)).length, 100_000)
  assert.deepEqual(lines('{"a":"cut'), ['{', '  "a": "cut'])
})

test('a comparison has every line of both sides in order, and marks as few as possible', () => {
  const letters = fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 12 })
  fc.assert(
    fc.property(letters, letters, (before, after) => {
      const diff = diffLines(before, after, (line) => line)
      const without = (change: string) => diff.filter((one) => one.change !== change).map(({ line }) => line)
      assert.deepEqual(without('added'), before)
      assert.deepEqual(without('removed'), after)
    }),
  )
  const changed = diffLines(['a', 'b', 'c', 'd'], ['a', 'x', 'c', 'd'], (line) => line)
  assert.deepEqual(
    changed.map(({ change, line }) => `${change} ${line}`),
    ['same a', 'removed b', 'added x', 'same c', 'same d'],
  )
})

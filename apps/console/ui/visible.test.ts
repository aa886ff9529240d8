import assert from 'node:assert/strict'
import { test } from 'node:test'
import { headOf, partsOf, plainText } from './visible.ts'

test('characters that cannot be seen, or that turn the direction of a text, are named', () => {
  const hidden = [
    '\u202e',
    '\u2066',
    '\u200b',
    '\u200d',
    '\u00ad',
    '\u061c',
    '\ufeff',
    '\u0000',
    '\u009b',
    '\u2028',
    '\u{e0041}',
    '\ufe0f',
    '\u3164',
    '\u034f',
    '\ud800',
  ]
  for (const char of hidden) {
    const parts = partsOf(`a${char}b`)
    assert.deepEqual(
      parts.map(({ isNamed }) => isNamed),
      [false, true, false],
      JSON.stringify(char),
    )
    assert.match(parts[1]?.text ?? '', /^U\+[0-9A-F]{4,6}$/)
    assert.ok(!plainText(`a${char}b`).includes(char))
  }
})

test('everything else stays as it is, in any script, with tabs and line feeds', () => {
  const text = 'Grüße, שלום, 你好, é, 𝒳\t\n<script>&amp;'
  assert.deepEqual(partsOf(text), [{ text, isNamed: false }])
})

test('many combining marks are counted, so that they do not draw over other lines', () => {
  const [part] = partsOf(`a${'\u0301'.repeat(50)}b`)
  assert.equal(part?.text, `a${'\u0301'.repeat(4)}[+46 marks]b`)
})

test('a head never ends in half of a pair of surrogates', () => {
  assert.equal(headOf('a😀b', 2), 'a')
  assert.equal(headOf('a😀b', 3), 'a😀')
})

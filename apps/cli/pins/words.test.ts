import assert from 'node:assert/strict'
import { test } from 'node:test'
import { differingLines } from './words.ts'

test('only the members that differ are shown, the pinned words before the offered ones', () => {
  const pinned = '{"description":"Reads.","inputSchema":{"type":"object"},"name":"read"}'
  const offered = '{"description":"Reads all.","name":"read","x":[1]}'
  assert.deepEqual(differingLines(pinned, offered), [
    'description',
    '  - "Reads."',
    '  + "Reads all."',
    'inputSchema',
    '  - {',
    '  -   "type": "object"',
    '  - }',
    'x',
    '  + [',
    '  +   1',
    '  + ]',
  ])
  assert.deepEqual(differingLines(pinned, pinned), [])
  assert.deepEqual(differingLines('{"max":9007199254740992}', '{"max":9007199254740993}'), [
    'max',
    '  - 9007199254740992',
    '  + 9007199254740993',
  ])
  assert.deepEqual(differingLines(null, '{"name":"read"}'), ['name', '  + "read"'])
})

test('control and invisible characters are shown as their codes, and every letter as itself', () => {
  const [, line] = differingLines(
    null,
    JSON.stringify({ d: 'a\u200bb\u202ec\u00a0d\u001b[2J\u{e0041}é e\u0301 日本 😀' }),
  )
  assert.equal(line, '  + "a\\u{200b}b\\u{202e}c\\u{a0}d\\u001b[2J\\u{e0041}é e\\u{301} 日本 😀"')
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NestedJson } from './nested.ts'

const listOf = (values: number) => `[${Array.from({ length: values - 1 }, () => '1').join()}]`

test('a text is parsed only if it is strict JSON, with exact numbers where they are wanted', () => {
  const nested = new NestedJson()
  assert.deepEqual(nested.parse('{"a":[1,"b"]}'), { a: [1, 'b'] })
  assert.equal(JSON.stringify(nested.parseLossless('{"a":12345678901234567890}')), '{"a":12345678901234567890}')
  for (const text of ['', '{', '{} {}', '{"a":1,"a":2}', '\ud800']) {
    assert.equal(nested.parse(text), undefined)
    assert.equal(nested.parseLossless(text), undefined)
  }
  assert.equal(nested.isFull, false)
})

test('the texts of a message share one limit of values, names and texts', () => {
  const nested = new NestedJson()
  assert.notEqual(nested.parse(listOf(20_000)), undefined)
  assert.notEqual(nested.parseLossless(`{${Array.from({ length: 4000 }, (_, at) => `"m${at}":1`).join()}}`), undefined)
  assert.equal(nested.parse(listOf(2000)), undefined)
  assert.equal(nested.isFull, true)
  assert.equal(nested.parse('{}'), undefined)
  const many = new NestedJson()
  let parsed = 0
  while (many.parse('1') === 1) parsed++
  assert.equal(parsed, 15_000)
})

test('the texts of a message share one limit of bytes', () => {
  const nested = new NestedJson()
  const mebibyte = `"${'é'.repeat(512 * 1024 - 1)}"`
  assert.notEqual(nested.parse(mebibyte), undefined)
  assert.notEqual(nested.parse(mebibyte), undefined)
  assert.equal(nested.parse('1'), undefined)
  assert.equal(nested.isFull, true)
})

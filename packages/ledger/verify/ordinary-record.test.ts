import assert from 'node:assert/strict'
import { isUtf8 } from 'node:buffer'
import { test } from 'node:test'
import { canonicalJson, isObject } from '@plat/core'
import fc from 'fast-check'
import { isOrdinaryRecord } from './ordinary-record.ts'

/** Bytes around the record, so that reading beyond it is noticed. */
const AROUND = '"'

function isOrdinary(record: string | Uint8Array): boolean {
  const bytes = Buffer.concat([Buffer.from(AROUND), Buffer.from(record), Buffer.from(AROUND)])
  return isOrdinaryRecord(bytes, AROUND.length, bytes.length - AROUND.length)
}

/** The definition: what the engine parses and writes again in canonical form, with `kind` and `at`. */
function isCanonicalRecord(bytes: Buffer): boolean {
  try {
    const text = bytes.toString()
    const value = JSON.parse(text)
    const isRecord = isObject(value) && typeof value.kind === 'string' && typeof value.at === 'string'
    return isRecord && isUtf8(bytes) && canonicalJson(value) === text
  } catch {
    return false
  }
}

const name = fc.oneof(
  fc.constantFrom('at', 'kind', 'a', 'b', 'ab', '', '10', '9', '__proto__'),
  fc.string({ maxLength: 3 }),
)
const leaf = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    false,
    0,
    -1,
    1.5,
    -0,
    1e21,
    999_999_999_999_999,
    2 ** 53,
    '\\',
    '"',
    '\n',
    '\u0001',
    'é',
    '/',
  ),
  fc.integer(),
  fc.string({ unit: 'binary', maxLength: 6 }),
)
const value = fc.letrec((tie) => ({
  value: fc.oneof(leaf, fc.array(tie('value'), { maxLength: 3 }), fc.dictionary(name, tie('value'), { maxKeys: 4 })),
})).value
const record = fc.tuple(fc.dictionary(name, value, { maxKeys: 4 }), fc.boolean()).map(([members, isSorted]) => {
  const whole = { kind: 'admin', at: 'x', ...members }
  return isSorted ? canonicalText(whole) : JSON.stringify(whole)
})

function canonicalText(whole: object): string {
  try {
    return canonicalJson(whole)
  } catch {
    return '{}'
  }
}

test('only canonical records with a kind and a time are ordinary', () => {
  const change = fc.record({
    at: fc.nat(),
    cut: fc.nat(3),
    more: fc.oneof(fc.constantFrom('"', '\\', ',', '}', ' ', '0', '.', 'e'), fc.string({ maxLength: 2 })),
  })
  const property = fc.property(record, fc.array(change, { maxLength: 2 }), (text, changes) => {
    let bytes = Buffer.from(text)
    for (const { at, cut, more } of changes) {
      const place = at % (bytes.length + 1)
      bytes = Buffer.concat([bytes.subarray(0, place), Buffer.from(more), bytes.subarray(place + cut)])
    }
    if (isUtf8(bytes) && isOrdinary(bytes)) assert.ok(isCanonicalRecord(bytes), bytes.toString())
  })
  fc.assert(property, { numRuns: 20_000 })
})

test('forms that are rare in random text are not ordinary where they are not canonical', () => {
  const list = [
    '-0',
    '00',
    '01',
    '-01',
    '1.0',
    '1e3',
    '"\u0001"',
    '"\n"',
    '"\\u0061"',
    '"\\/"',
    '{"\uffff":1,"\u{10000}":2}',
    '{"b":1,"a":2}',
    '{"a":1,"a":2}',
  ]
  for (const other of list) {
    const text = `{"at":"x","kind":"admin","n":${other}}`
    assert.ok(!isCanonicalRecord(Buffer.from(text)) && !isOrdinary(text), text)
  }
})

test('records as gateways write them are ordinary', () => {
  const member = fc.oneof(
    fc.integer(),
    fc.nat(999_999_999_999_999),
    fc.boolean(),
    fc.constant(null),
    fc.string({ unit: 'grapheme' }),
    fc.array(fc.stringMatching(/^[a-z"\\\n\t]*$/)),
  )
  const names = fc.stringMatching(/^[a-zA-Z][a-zA-Z0-9_./-]*$/)
  const property = fc.property(fc.dictionary(names, fc.oneof(member, fc.dictionary(names, member))), (members) => {
    const text = canonicalJson({ ...members, at: '2026-01-01T00:00:00.000000Z', kind: 'decision' })
    assert.ok(isOrdinary(text), text)
  })
  fc.assert(property, { numRuns: 2000 })
})

test('text beyond the record, and a record that ends before the end, are not ordinary', () => {
  const text = '{"at":"x","kind":"admin"}'
  assert.ok(isOrdinary(text))
  for (const other of [`${text},`, `${text} `, text.slice(0, -1), '', '[]', '"x"', '{}', `[${text}]`])
    assert.ok(!isOrdinary(other), other)
  for (const other of ['{"at":"x"}', '{"at":"x","kind":1}', '{"at":"x","rec":{"kind":"admin"}}'])
    assert.ok(!isOrdinary(other), other)
})

test('deep nesting is left to the caller', () => {
  const nested = (depth: number) => `{"at":"x","kind":"admin","list":${'['.repeat(depth)}${']'.repeat(depth)}}`
  assert.ok(isOrdinary(nested(20)))
  assert.ok(!isOrdinary(nested(100_000)))
  assert.ok(!isOrdinary(`{"at":"x","kind":"admin","list":${'{"a":'.repeat(100_000)}`))
})

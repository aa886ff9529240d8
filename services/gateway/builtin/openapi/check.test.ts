import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseLossless } from '@plat/core'
import fc from 'fast-check'
import Type from 'typebox'
import { Check } from 'typebox/value'
import { schemaProblem } from './check.ts'

function problem(schema: object, value: unknown): string | null {
  const found = schemaProblem(schema, value)
  return found === null ? null : `${found.path}: ${found.message}`
}

test('a problem names the member and what it must be', () => {
  const schema = {
    type: 'object',
    required: ['a'],
    properties: {
      a: { type: 'integer', minimum: 1, maximum: 5 },
      b: { type: 'array', items: { type: 'string', maxLength: 2 }, maxItems: 3, uniqueItems: true },
      c: { enum: ['x', 'y', { z: 1 }] },
      d: { anyOf: [{ type: 'string' }, { type: 'null' }] },
      e: { $ref: '#/$defs/E' },
    },
    additionalProperties: false,
    $defs: { E: { type: 'object', properties: { e: { $ref: '#/$defs/E' } }, additionalProperties: false } },
  }
  assert.equal(problem(schema, {}), '/a: is required')
  assert.equal(problem(schema, []), ': must be object')
  assert.equal(problem(schema, { a: 1.5 }), '/a: must be integer')
  assert.equal(problem(schema, { a: 6 }), '/a: must be at most 5')
  assert.equal(problem(schema, { a: 1, b: ['a', 'abc'] }), '/b/1: must have at most 2 characters')
  assert.equal(problem(schema, { a: 1, b: ['a', 'a'] }), '/b: must not have an element twice')
  assert.equal(problem(schema, { a: 1, b: ['😀😀', 'a', 'b', 'c'] }), '/b: must have at most 3 elements')
  assert.equal(problem(schema, { a: 1, c: 'w' }), '/c: must be one of "x", "y", {"z":1}')
  assert.equal(problem(schema, { a: 1, d: 5 }), '/d: has none of the 2 allowed forms')
  assert.equal(problem(schema, { a: 1, e: { e: { x: 1 } } }), '/e/e/x: is not an argument that exists')
  assert.equal(problem(schema, { a: 1, __proto__x: 1 }), '/__proto__x: is not an argument that exists')
  assert.equal(problem(schema, { a: 5, b: ['😀😀'], c: { z: 1 }, d: null, e: { e: {} } }), null)
})

test('numbers are judged by their exact text', () => {
  const integer = { type: 'integer' }
  assert.equal(problem(integer, parseLossless('12345678901234567890')), null)
  assert.equal(problem(integer, parseLossless('1.0')), null)
  assert.equal(problem({ type: 'object' }, parseLossless('1e3')), ': must be object')
  assert.equal(problem({ type: 'number', multipleOf: 0.1 }, 0.3), null)
})

test('schemas that need exponential time, or that never end, are given up', () => {
  const branches = Array.from({ length: 60 }, (_, at) => [
    `S${at}`,
    { anyOf: [{ $ref: `#/$defs/S${at + 1}` }, { $ref: `#/$defs/S${at + 1}` }] },
  ])
  const slow = { $ref: '#/$defs/S0', $defs: { ...Object.fromEntries(branches), S60: false } }
  assert.equal(problem(slow, 1), ': too large or too deep to be checked')
  const endless = { $ref: '#/$defs/A', $defs: { A: { $ref: '#/$defs/A' } } }
  assert.equal(problem(endless, 1), ': too large or too deep to be checked')
})

test('the same values are accepted as by another validator', () => {
  const schema = Type.Object(
    {
      a: Type.Union([Type.String({ minLength: 1 }), Type.Integer({ minimum: 0 })]),
      b: Type.Optional(Type.Array(Type.Boolean(), { maxItems: 2 })),
    },
    { additionalProperties: false },
  )
  const value = fc.oneof(
    fc.json().map((text) => JSON.parse(text)),
    fc.record({ a: fc.jsonValue(), b: fc.jsonValue() }, { requiredKeys: [] }),
  )
  const property = fc.property(value, (one) => assert.equal(schemaProblem(schema, one) === null, Check(schema, one)))
  fc.assert(property, { numRuns: 300 })
})

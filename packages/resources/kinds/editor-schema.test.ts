import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isObject } from '@plat/core'
import { Check } from 'typebox/schema'
import { validate, withDefaults } from '../validate.ts'
import { editorSchemaOf } from './editor-schema.ts'
import { examples } from './examples.ts'
import { isKind, kinds } from './kinds.ts'

const all = Object.keys(kinds).filter(isKind)

test('the example of each kind is valid, for the schema and for plat', () => {
  for (const kind of all) {
    assert.deepEqual(validate(kind, withDefaults(kind, examples[kind])), [], kind)
    assert.ok(Check(Object(editorSchemaOf(kind)), examples[kind]), kind)
  }
})

test('an unknown field, a wrong kind and a missing spec are refused by the schema', () => {
  for (const kind of all) {
    const schema = Object(editorSchemaOf(kind))
    assert.ok(!Check(schema, { ...examples[kind], frobnicate: 1 }), kind)
    assert.ok(!Check(schema, { ...examples[kind], kind: 'Other' }), kind)
    assert.ok(!Check(schema, { ...examples[kind], spec: undefined }), kind)
  }
})

test('every field has a description', () => {
  const missing = (node: unknown, path: string): string[] => {
    if (!isObject(node)) return []
    const below = [
      ...Object.entries(Object(node.properties)),
      ['[]', node.items],
      ['{}', node.additionalProperties],
    ] as const
    const own = Object.entries(Object(node.properties)).flatMap(([name, one]) =>
      isObject(one) && typeof one.description === 'string' ? [] : [`${path}.${name}`],
    )
    return [...own, ...below.flatMap(([name, one]) => missing(one, `${path}.${name}`))]
  }
  assert.deepEqual(
    all.flatMap((kind) => missing(editorSchemaOf(kind), kind)),
    [],
  )
})

test('words that only an API server reads are left out, and a quantity may be a number or a text', () => {
  const text = JSON.stringify(all.map(editorSchemaOf))
  assert.doesNotMatch(text, /x-kubernetes-|"int32"|"int64"/)
  const { properties } = Object(editorSchemaOf('BudgetPolicy')).properties.spec
  assert.deepEqual(properties.perDay.type, ['integer', 'string'])
})

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { isObject } from '@plat/core'
import { type Members, member } from '@plat/kubernetes'
import { parse } from 'yaml'
import {
  agentFields,
  agentStatusFields,
  type FieldRule,
  type Fields,
  narrower,
  serverFields,
  serverStatusFields,
} from './crd-fields.ts'

const CRDS = path.resolve(import.meta.dirname, '../../deploy/crds')

/** Members of a schema that the table compares. `maxLength` and `maxItems` limit every text and list, in the contract only some. */
const EXACT = ['enum', 'pattern', 'default', 'minLength', 'minimum'] as const
const BOUNDS = ['maxLength', 'maximum', 'maxItems', 'format'] as const

/** The schema of an API server below a path, by the path of each field. */
function fieldsOf(schema: Members, at = '', isRequired = false): ReadonlyMap<string, Members> {
  const fields = new Map<string, Members>()
  if (at !== '') fields.set(at, { ...schema, required: isRequired })
  const add = (name: string, child: unknown, required = false) => {
    if (isObject(child)) for (const [found, node] of fieldsOf(child, name, required)) fields.set(found, node)
  }
  const required = Array.isArray(schema.required) ? schema.required : []
  for (const [name, child] of Object.entries(member(schema, 'properties')))
    add(at === '' ? name : `${at}.${name}`, child, required.includes(name))
  add(`${at}[]`, schema.items)
  add(`${at}{}`, schema.additionalProperties)
  return fields
}

function schemaOf(plural: string): { readonly spec: Members; readonly status: Members } {
  const { spec } = parse(readFileSync(path.join(CRDS, `${plural}.plat.dev.yaml`), 'utf8'))
  const [version] = spec.versions
  const { properties } = version.schema.openAPIV3Schema
  return { spec: properties.spec, status: properties.status }
}

/** Members of a field's schema: those in the contract, and additional ones. */
function comparable(node: Members, rule: FieldRule, isNarrower: boolean): object {
  const type = node['x-kubernetes-int-or-string'] === true ? 'quantity' : node.type
  const documented: Record<string, unknown> = { type, ...(node.required === true && { required: true }) }
  const ofQuantity = type === 'quantity'
  for (const name of EXACT)
    if (node[name] !== undefined && !ofQuantity && (!isNarrower || rule[name] !== undefined))
      documented[name] = node[name]
  for (const name of BOUNDS) if (rule[name] !== undefined) documented[name] = node[name]
  return documented
}

function assertFields(schema: Members, fields: Fields): void {
  const actual = fieldsOf(schema)
  assert.deepEqual([...actual.keys()].toSorted(), Object.keys(fields).toSorted())
  for (const [name, rule] of Object.entries(fields))
    assert.deepEqual(comparable(actual.get(name) ?? {}, rule, narrower[name] !== undefined), { ...rule }, name)
}

test('every field of an Agent has the type, values, pattern, bounds and default of the contract, and there is no other', () => {
  // Shows D2.schema.agent, D2.model.apiVersion.pattern.
  const { spec, status } = schemaOf('agents')
  assertFields(spec, agentFields)
  assertFields(status, agentStatusFields)
})

test('every field of an MCPServer has the type, values, pattern, bounds and default of the contract, and there is no other', () => {
  // Shows D2.schema.server.
  const { spec, status } = schemaOf('mcpservers')
  assertFields(spec, serverFields)
  assertFields(status, serverStatusFields)
})

test('every text and list of a field has a limit', () => {
  for (const plural of ['agents', 'mcpservers']) {
    for (const [part, schema] of Object.entries(schemaOf(plural))) {
      for (const [name, { type, enum: values, maxLength, maxItems }] of fieldsOf(schema)) {
        const limit = type === 'array' ? maxItems : type === 'string' && values === undefined ? maxLength : 1
        assert.ok(Number(limit) > 0, `${plural} ${part}.${name}`)
      }
    }
  }
})

test('fields that are narrower than the contract says are named with a reason, and no others are', () => {
  const tables = [
    [schemaOf('agents').spec, agentFields],
    [schemaOf('agents').status, agentStatusFields],
    [schemaOf('mcpservers').spec, serverFields],
    [schemaOf('mcpservers').status, serverStatusFields],
  ] as const
  const found = tables.flatMap(([schema, fields]) =>
    [...fieldsOf(schema)].flatMap(([name, node]) => {
      const rule = fields[name] ?? {}
      const same = JSON.stringify(comparable(node, rule, true)) === JSON.stringify(comparable(node, rule, false))
      return same ? [] : [name]
    }),
  )
  assert.deepEqual([...new Set(found)].toSorted(), Object.keys(narrower).toSorted())
})

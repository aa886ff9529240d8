import { isObject } from '@plat/core'
import type { TSchema } from 'typebox'
import type { Node } from '../check.ts'
import { manifestSchemas } from '../validate.ts'
import { examples } from './examples.ts'
import { editorSchemaFile, isKind, type Kind, kinds } from './kinds.ts'

/** Members of a structural schema that only an API server reads. */
const NOT_FOR_EDITORS = /^x-kubernetes-|^format$|^default$|^properties$|^items$|^additionalProperties$|^required$/

const HEAD: Readonly<Record<string, string>> = {
  apiVersion: 'Version of the resource API.',
  kind: 'Kind of the resource.',
  metadata: 'Name and labels.',
  spec: 'What is declared.',
}

const METADATA: Readonly<Record<string, string>> = {
  name: 'Name; also that of the file.',
  namespace: 'Namespace; also that of the folder.',
  labels: 'Labels for selectors.',
  annotations: 'Notes for people and programs.',
}

/** Returns the schema of a kind as JSON Schema 2020-12 for editors: fields with a default are optional. */
export function editorSchemaOf(kind: Kind): object {
  const schema: TSchema = manifestSchemas[kind]
  const { properties, ...rest } = published(schema)
  const described = describe(properties, HEAD)
  const metadata = isObject(described.metadata) ? described.metadata : {}
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: kind,
    ...rest,
    properties: { ...described, metadata: { ...metadata, properties: describe(metadata.properties, METADATA) } },
    examples: [examples[kind]],
  }
}

function describe(members: unknown, words: Readonly<Record<string, string>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(isObject(members) ? members : {}).map(([name, node]) => [
      name,
      isObject(node) ? { description: words[name], ...node } : node,
    ]),
  )
}

function published(node: Node): Record<string, unknown> {
  const { properties, items, additionalProperties, required = [] } = node
  const result: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(node)) if (!NOT_FOR_EDITORS.test(name)) result[name] = value
  if (node.format === 'date-time') result.format = node.format
  if (node.default !== undefined) result.default = node.default
  if (node['x-kubernetes-int-or-string'] === true) result.type = ['integer', 'string']
  const rules = node['x-kubernetes-validations'] ?? []
  if (rules.length > 0) result.$comment = rules.map(({ message }) => message).join('; ')
  if (items !== undefined) result.items = published(items)
  if (additionalProperties !== undefined)
    result.additionalProperties = isObject(additionalProperties)
      ? published(additionalProperties)
      : additionalProperties
  if (properties === undefined) return result
  const needed = required.filter((name) => properties[name]?.default === undefined)
  if (needed.length > 0) result.required = needed
  result.properties = Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, published(one)]))
  return result
}

/** Every schema by the name of its file. */
export function editorSchemas(): ReadonlyMap<string, object> {
  return new Map(
    Object.keys(kinds)
      .filter(isKind)
      .map((kind) => [editorSchemaFile(kind), editorSchemaOf(kind)]),
  )
}

import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { isObject } from '@plat/core'
import { writeYaml } from '@plat/kubernetes'
import type { TSchema } from 'typebox'
import type { Node } from '../check.ts'
import { AGENT_REQUIRED_ON_CLUSTER } from './agent.ts'
import { API_VERSION, clusterMetadataSchema, isClusterKind, isKind, type Kind, kinds, metadataSchema } from './kinds.ts'

const [GROUP = '', VERSION = ''] = API_VERSION.split('/')

/** A CustomResourceDefinition of apiextensions.k8s.io/v1. */
export interface Definition {
  readonly apiVersion: string
  readonly kind: 'CustomResourceDefinition'
  readonly metadata: { readonly name: string }
  readonly spec: object
}

/** Returns the schema of a kind in the form of an API server. */
export function structuralSchemaOf(kind: Kind) {
  const { spec, status }: { readonly spec: TSchema; readonly status: TSchema } = kinds[kind]
  const { name } = (isClusterKind(kind) ? clusterMetadataSchema : metadataSchema).properties
  return {
    type: 'object',
    required: ['spec'],
    properties: {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: { type: 'object', properties: { name: structural(name) } },
      spec: structural(spec),
      status: structural(status),
    },
  }
}

/** The same with what is only required on a cluster. */
function clusterSchemaOf(kind: Kind) {
  const schema = structuralSchemaOf(kind)
  if (kind !== 'Agent') return schema
  const { type, ...spec }: Node = schema.properties.spec
  const required = [...AGENT_REQUIRED_ON_CLUSTER, ...(spec.required ?? [])]
  return { ...schema, properties: { ...schema.properties, spec: { type, required, ...spec } } }
}

/** A column of the tables that an API server creates for a kind. */
export interface Column {
  readonly name: string
  readonly type: string
  readonly jsonPath: string
}

/** Columns after the name (docs/spec/crds.md). */
export function columnsOf(kind: Kind): readonly Column[] {
  const schema = structuralSchemaOf(kind)
  return kinds[kind].columns.map(([name, jsonPath]) => columnOf(schema, name, jsonPath))
}

/** Returns the CustomResourceDefinition of a kind: the same schema, rules and columns that files are validated with (docs/spec/crds.md). */
export function definitionOf(kind: Kind): Definition {
  const { plural, shortNames, categories } = kinds[kind]
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${GROUP}` },
    spec: {
      group: GROUP,
      scope: isClusterKind(kind) ? 'Cluster' : 'Namespaced',
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: kind.toLowerCase(),
        ...(shortNames.length > 0 && { shortNames: [...shortNames] }),
        categories: [...categories],
      },
      versions: [
        {
          name: VERSION,
          served: true,
          storage: true,
          schema: { openAPIV3Schema: clusterSchemaOf(kind) },
          subresources: { status: {} },
          additionalPrinterColumns: columnsOf(kind),
        },
      ],
    },
  }
}

/**
 * Converts a schema to a structural one for the API server, which prunes unknown fields, or refuses them if the client requests it, and does not
 * accept `additionalProperties: false`.
 */
function structural(node: Node): object {
  const { additionalProperties, properties, items, ...rest } = node
  return {
    ...rest,
    ...(isObject(additionalProperties) && { additionalProperties: structural(additionalProperties) }),
    ...(properties && { properties: mapped(properties) }),
    ...(items && { items: structural(items) }),
  }
}

function mapped(properties: Readonly<Record<string, Node>>): object {
  return Object.fromEntries(Object.entries(properties).map(([name, node]) => [name, structural(node)]))
}

function columnOf(schema: Node, name: string, jsonPath: string): Column {
  const node = jsonPath
    .slice(1)
    .split('.')
    .reduce<Node | undefined>((at, step) => at?.properties?.[step], schema)
  const type = name === 'Age' ? 'date' : node?.type === 'integer' || node?.type === 'boolean' ? node.type : 'string'
  return { name, type, jsonPath }
}

/** For kubectl (YAML 1.1), without references. */
const WRITING = { lineWidth: 120 }

/** Files of `deploy/crds`, by name; run this file to regenerate them. */
export function definitionFiles(): ReadonlyMap<string, string> {
  const head =
    '# Written from packages/resources/kinds by `node packages/resources/kinds/definitions.ts`; do not edit.\n'
  return new Map(
    Object.keys(kinds)
      .filter(isKind)
      .map(definitionOf)
      .map((definition) => [`${definition.metadata.name}.yaml`, head + writeYaml(definition, WRITING)]),
  )
}

if (import.meta.main) {
  const folder = path.resolve(import.meta.dirname, '../../../deploy/crds')
  mkdirSync(folder, { recursive: true })
  for (const [name, text] of definitionFiles()) writeFileSync(path.join(folder, name), text)
}

import { isObject } from '@plat/core'
import { type TSchema, Type } from 'typebox'
import { Value } from 'typebox/value'
import { checkStructure, type FieldProblem, type Node } from './check.ts'
import {
  API_VERSION,
  clusterMetadataSchema,
  isClusterKind,
  type Kind,
  kinds,
  type Manifest,
  metadataSchema,
  type StatusOf,
} from './kinds/kinds.ts'
import { checkRules } from './rules.ts'

/**
 * Returns all problems of an object of a kind, in the words of the Kubernetes API server. Rules across fields are only evaluated for an object with
 * valid fields.
 */
export function validate(kind: Kind, object: unknown): FieldProblem[] {
  const schema = manifestSchemas[kind]
  const problems = checkStructure(schema, object)
  return problems.length > 0 ? problems : checkRules(schema, object)
}

/** Returns the problems of a status, with paths from `status`. */
export function validateStatus(kind: Kind, status: unknown): FieldProblem[] {
  return checkStructure(kinds[kind].status, status, 'status')
}

/** Returns whether the value has the shape of a kind. Called after `validate`, which gives the reasons. */
export function isManifest<K extends Kind>(kind: K, value: unknown): value is Manifest<K> {
  return Value.Check(manifestSchemas[kind], value)
}

export function isStatus<K extends Kind>(kind: K, value: unknown): value is StatusOf<K> {
  return Value.Check(kinds[kind].status, value)
}

/**
 * Returns a copy of an object with the schema's defaults filled in. They apply before validation, as in Kubernetes: a required field with a default
 * may be omitted.
 */
export function withDefaults<T>(kind: Kind, object: T): T {
  const schema: TSchema = manifestSchemas[kind]
  const copy = structuredClone(object)
  fill(schema, copy)
  return copy
}

function fill(node: Node, value: unknown): void {
  if (Array.isArray(value)) {
    for (const item of value) if (node.items !== undefined) fill(node.items, item)
    return
  }
  if (!isObject(value)) return
  for (const [name, child] of Object.entries(node.properties ?? {})) {
    if (value[name] === undefined && child.default !== undefined)
      Reflect.set(value, name, structuredClone(child.default))
    fill(child, value[name])
  }
  if (!isObject(node.additionalProperties)) return
  for (const item of Object.values(value)) fill(node.additionalProperties, item)
}

/** The whole object of each kind, as users write it. */
export const manifestSchemas = {
  Agent: manifestSchema('Agent'),
  MCPServer: manifestSchema('MCPServer'),
  ToolPolicy: manifestSchema('ToolPolicy'),
  BudgetPolicy: manifestSchema('BudgetPolicy'),
  MemoryStore: manifestSchema('MemoryStore'),
  SovereigntyPolicy: manifestSchema('SovereigntyPolicy'),
  TrustTier: manifestSchema('TrustTier'),
  AgentSession: manifestSchema('AgentSession'),
  AgentRevocation: manifestSchema('AgentRevocation'),
  ConnectedAccount: manifestSchema('ConnectedAccount'),
}

function manifestSchema(kind: Kind) {
  return Type.Object(
    {
      apiVersion: Type.Enum([API_VERSION], { type: 'string' }),
      kind: Type.Enum([kind], { type: 'string' }),
      metadata: isClusterKind(kind) ? clusterMetadataSchema : metadataSchema,
      spec: kinds[kind].spec,
    },
    { additionalProperties: false },
  )
}

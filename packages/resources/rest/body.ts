import { isObject, parseStrict } from '@plat/core'
import type { TSchema } from 'typebox'
import { type FieldProblem, type Node, under } from '../check.ts'
import { API_VERSION, isClusterKind, type Kind, kinds } from '../kinds/kinds.ts'
import { withDefaults } from '../validate.ts'
import { invalid, RestError } from './error.ts'
import { JSON_TYPE, type RestRequest } from './rest.ts'
import type { Target } from './route.ts'

export function mediaTypeOf({ contentType }: Pick<RestRequest, 'contentType'>): string {
  return contentType.split(';', 1)[0]?.trim().toLowerCase() ?? ''
}

/** Parses a JSON body. Throws 415 and 400. */
export function readValue(request: Pick<RestRequest, 'contentType' | 'body'>): unknown {
  const type = mediaTypeOf(request)
  if (type === '' || type === JSON_TYPE) return readJson(request.body)
  throw new RestError(415, `the body of the request was in an unknown format: send ${JSON_TYPE}`)
}

/** Parses a JSON body of any media type. Throws 400. */
export function readJson(body: Uint8Array): unknown {
  try {
    return parseStrict(body)
  } catch (error) {
    throw new RestError(400, `the body is not JSON: ${error instanceof Error ? error.message : 'unreadable'}`)
  }
}

/** A received object, decoded as its kind. */
export interface Sent {
  /** With name and namespace, without unknown fields, defaults filled in. */
  readonly object: Record<string, unknown>
  readonly name: string
  readonly namespace: string
  /** Preconditions in the object. */
  readonly uid: string | null
  readonly revision: string | null
  readonly status: unknown
  /** Fields that were dropped, for warnings. */
  readonly warnings: readonly string[]
}

/** Metadata written by the store: clients send back what they read. */
const OF_STORE = [
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'managedFields',
  'selfLink',
  'generateName',
]

/** Members of the metadata with functions that a file store does not have. */
const NOT_KEPT = ['finalizers', 'ownerReferences', 'deletionTimestamp', 'deletionGracePeriodSeconds']

/**
 * Decodes an object of a kind. `fieldValidation` decides on unknown fields as in Kubernetes: `Strict` refuses, `Warn` (the default) drops with a
 * warning, `Ignore` drops. Throws 400 and 422.
 */
export function readSent(value: unknown, target: Target, query: URLSearchParams, freshName: () => string): Sent {
  const { kind } = target
  if (!isObject(value)) throw new RestError(400, 'the body is not an object')
  expectType(kind, value)
  const metadata = isObject(value.metadata) ? value.metadata : {}
  const name = nameOf(metadata, target, freshName)
  const namespace = namespaceOf(metadata, target)
  refuseNotKept(kind, name, metadata)
  const { uid, resourceVersion } = metadata
  const own = Object.fromEntries(Object.entries(metadata).filter(([member]) => !OF_STORE.includes(member)))
  const { status, ...rest } = value
  const statusSchema: TSchema = kinds[kind].status
  const unknown: string[] = []
  const object = pruned(schemaOf(kind), { ...rest, metadata: { ...own, name, namespace } }, '', unknown)
  return {
    object: withDefaults(kind, isObject(object) ? object : {}),
    name,
    namespace,
    uid: typeof uid === 'string' && uid !== '' ? uid : null,
    revision: typeof resourceVersion === 'string' && resourceVersion !== '' ? resourceVersion : null,
    status: pruned(statusSchema, status, 'status', unknown),
    warnings: judged(unknown, query.get('fieldValidation')),
  }
}

/** The object must agree with the path. */
function expectType(kind: Kind, value: Record<string, unknown>): void {
  const expected = { apiVersion: API_VERSION, kind }
  const problems: FieldProblem[] = Object.entries(expected)
    .filter(([member, wanted]) => value[member] !== wanted)
    .map(([path, wanted]) => ({
      path,
      message: `Invalid value: ${JSON.stringify(value[path] ?? '')}: must be ${wanted}`,
    }))
  if (problems.length > 0) throw invalid(kind, '', problems)
}

function nameOf(metadata: Record<string, unknown>, target: Target, freshName: () => string): string {
  const { name, generateName } = metadata
  const given = typeof name === 'string' ? name : ''
  if (target.name !== null && given !== '' && given !== target.name) {
    throw new RestError(400, `the name of the object (${given}) does not match the name on the URL (${target.name})`)
  }
  if (target.name !== null || given !== '') return target.name ?? given
  if (typeof generateName === 'string' && generateName !== '') return generateName + freshName()
  const message = 'Required value: name or generateName is required'
  throw invalid(target.kind, '', [{ path: 'metadata.name', message }])
}

function namespaceOf({ namespace }: Record<string, unknown>, target: Target): string {
  if (isClusterKind(target.kind)) return ''
  if (namespace === undefined || namespace === '' || namespace === target.namespace) return target.namespace
  throw new RestError(
    400,
    `the namespace of the object (${String(namespace)}) does not match the namespace on the URL (${target.namespace})`,
  )
}

function refuseNotKept(kind: Kind, name: string, metadata: Record<string, unknown>): void {
  const problems: FieldProblem[] = NOT_KEPT.filter((member) => metadata[member] !== undefined).map((member) => ({
    path: `metadata.${member}`,
    message: 'Forbidden: resources that stand in files have none',
  }))
  if (problems.length > 0) throw invalid(kind, name, problems)
}

function schemaOf(kind: Kind): Node {
  const text: Node = {}
  const metadata: Node = {
    properties: { name: text, namespace: text, labels: text, annotations: text },
    additionalProperties: false,
  }
  const spec: TSchema = kinds[kind].spec
  return { properties: { apiVersion: text, kind: text, metadata, spec }, additionalProperties: false }
}

/** Returns a value without unknown fields, whose paths are added to `unknown`. */
function pruned(node: Node, value: unknown, path: string, unknown: string[]): unknown {
  if (Array.isArray(value)) {
    const { items } = node
    return items === undefined ? value : value.map((item, at) => pruned(items, item, `${path}[${at}]`, unknown))
  }
  if (!isObject(value)) return value
  const { properties = {}, additionalProperties } = node
  const remaining: [string, unknown][] = []
  for (const [name, item] of Object.entries(value)) {
    const child = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (child !== undefined) remaining.push([name, pruned(child, item, under(path, name), unknown)])
    else if (isObject(additionalProperties)) {
      remaining.push([name, pruned(additionalProperties, item, under(path, name), unknown)])
    } else if (additionalProperties === false) unknown.push(under(path, name))
    else remaining.push([name, item])
  }
  return Object.fromEntries(remaining)
}

/** Maximum number of warnings about unknown fields. */
const WARNINGS_MAX = 20

function judged(unknown: readonly string[], fieldValidation: string | null): readonly string[] {
  const reported = unknown.slice(0, WARNINGS_MAX).map((path) => `unknown field "${path}"`)
  if (fieldValidation === 'Ignore') return []
  if (fieldValidation !== 'Strict' || reported.length === 0) return reported
  throw new RestError(400, `strict decoding error: ${reported.join(', ')}`)
}

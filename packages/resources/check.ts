import { closest, isObject } from '@plat/core'
import { type Static, type TSchema, Type } from 'typebox'
import type { CelRule } from './cel.ts'

/** A problem of an object: `spec.profile` and `Unsupported value: "foo": supported values: …`. */
export interface FieldProblem {
  /** `spec.tools[0].name`, `spec.toolLabels[search].taints`; empty for the object itself. */
  readonly path: string
  /** Message of the Kubernetes API server for the same problem. */
  readonly message: string
}

/** The part of JSON Schema that Kubernetes calls structural and that our schemas use. */
export interface Node {
  readonly type?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly pattern?: string
  /** Only `date-time` is checked; `int32` and `int64` accompany their range. */
  readonly format?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly minProperties?: number
  readonly maxProperties?: number
  readonly properties?: Readonly<Record<string, Node>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | Node
  readonly items?: Node
  readonly default?: unknown
  readonly 'x-kubernetes-int-or-string'?: true
  readonly 'x-kubernetes-preserve-unknown-fields'?: true
  readonly 'x-kubernetes-list-map-keys'?: readonly string[]
  readonly 'x-kubernetes-validations'?: readonly CelRule[]
}

/** Maximum number of problems listed per value; a document of 1 MiB may have 100,000. */
const MAX_PROBLEMS = 100

/**
 * Checks a value against a structural schema: unknown fields, required fields, types, sizes, patterns, keys of list maps. Lists the first
 * `MAX_PROBLEMS`, then one problem for the others. Rules across fields are checked by `checkRules`.
 */
export function checkStructure(schema: TSchema, value: unknown, path = ''): FieldProblem[] {
  const problems: FieldProblem[] = []
  checkNode(schema, value, path, problems)
  if (problems.length <= MAX_PROBLEMS) return problems
  return [...problems.slice(0, MAX_PROBLEMS), { path, message: `more than ${MAX_PROBLEMS} problems` }]
}

/** A map from any name to `schema`, in Kubernetes' form (`additionalProperties`, no `patternProperties`). */
export function mapOf<T extends TSchema>(schema: T, options: object = {}) {
  return Type.Unsafe<Record<string, Static<T>>>({ type: 'object', additionalProperties: schema, ...options })
}

/** Returns the path of a member below `path`. */
export function under(path: string, member: string): string {
  return path === '' ? member : `${path}.${member}`
}

function checkNode(node: Node, value: unknown, path: string, out: FieldProblem[]): void {
  if (out.length > MAX_PROBLEMS) return
  const type = typeOf(value)
  if (node['x-kubernetes-int-or-string'] === true) {
    if (type === 'integer') return
    if (type !== 'string') {
      out.push(wrongType(path, 'integer or string', type))
      return
    }
  } else if (node.type !== undefined && node.type !== type && !(node.type === 'number' && type === 'integer')) {
    out.push(wrongType(path, node.type, type))
    return
  }
  if (node.enum !== undefined && !node.enum.includes(value)) {
    const supported = node.enum.map((one) => JSON.stringify(one)).join(', ')
    out.push({ path, message: `Unsupported value: ${JSON.stringify(value)}: supported values: ${supported}` })
    return
  }
  if (node.const !== undefined && node.const !== value) {
    out.push(invalid(path, value, `must be ${JSON.stringify(node.const)}`))
  }
  if (typeof value === 'string') checkText(node, value, path, out)
  else if (typeof value === 'number') checkNumber(node, value, path, out)
  else if (Array.isArray(value)) checkList(node, value, path, out)
  else if (isObject(value)) checkObject(node, value, path, out)
}

function checkText(node: Node, value: string, path: string, out: FieldProblem[]): void {
  if (!value.isWellFormed()) out.push(invalid(path, value, 'must be Unicode without lone surrogates'))
  if (node.maxLength !== undefined && isLonger(value, node.maxLength)) {
    out.push({ path, message: `Too long: may not be more than ${node.maxLength} characters` })
  }
  if (node.minLength !== undefined && value.length < node.minLength) {
    out.push(invalid(path, value, `should be at least ${node.minLength} chars long`))
  } else if (node.pattern !== undefined && !compiled(node.pattern).test(value)) {
    out.push(invalid(path, value, `should match '${node.pattern}'`))
  }
  if (node.format === 'date-time' && !isDateTime(value)) {
    out.push(invalid(path, value, `must be of type date-time: ${JSON.stringify(value)}`))
  }
}

/** An API server counts code points, each of which may be two UTF-16 units. */
function isLonger(text: string, maxLength: number): boolean {
  if (text.length <= maxLength) return false
  if (text.length > 2 * maxLength) return true
  let points = 0
  for (const _ of text) points++
  return points > maxLength
}

const DATE_TIME = /^\d{4}-\d{2}-\d{2}T([01]\d|2[0-3]):\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/

/** RFC 3339 with a valid calendar date. */
function isDateTime(text: string): boolean {
  if (!DATE_TIME.test(text) || Number.isNaN(Date.parse(text))) return false
  const [year = 0, month = 0, day = 0] = text.slice(0, 'YYYY-MM-DD'.length).split('-').map(Number)
  return new Date(Date.UTC(year, month - 1, day)).getUTCDate() === day
}

function checkNumber(node: Node, value: number, path: string, out: FieldProblem[]): void {
  if (node.minimum !== undefined && value < node.minimum) {
    out.push(invalid(path, value, `should be greater than or equal to ${node.minimum}`))
  }
  if (node.maximum !== undefined && value > node.maximum) {
    out.push(invalid(path, value, `should be less than or equal to ${node.maximum}`))
  }
}

function checkList(node: Node, value: readonly unknown[], path: string, out: FieldProblem[]): void {
  if (node.maxItems !== undefined && value.length > node.maxItems) {
    out.push({ path, message: `Too many: ${value.length}: must have at most ${node.maxItems} items` })
    return
  }
  if (node.minItems !== undefined && value.length < node.minItems) {
    out.push(invalid(path, value.length, `should have at least ${node.minItems} items`))
  }
  if (node.items === undefined) return
  for (const [index, item] of value.entries()) checkNode(node.items, item, `${path}[${index}]`, out)
  const keys = node['x-kubernetes-list-map-keys']
  if (keys !== undefined) checkUnique(keys, value, path, out)
}

function checkUnique(keys: readonly string[], value: readonly unknown[], path: string, out: FieldProblem[]): void {
  const seen = new Set<string>()
  for (const [index, item] of value.entries()) {
    if (out.length > MAX_PROBLEMS) return
    if (!isObject(item)) continue
    const key = JSON.stringify(Object.fromEntries(keys.map((name) => [name, item[name]])))
    if (seen.has(key)) out.push({ path: `${path}[${index}]`, message: `Duplicate value: ${key}` })
    seen.add(key)
  }
}

function checkObject(node: Node, value: Record<string, unknown>, path: string, out: FieldProblem[]): void {
  const names = Object.keys(value)
  const size = names.length
  if (node.maxProperties !== undefined && size > node.maxProperties) {
    out.push({ path, message: `Too many: ${size}: must have at most ${node.maxProperties} items` })
    return
  }
  if (node.minProperties !== undefined && size < node.minProperties) {
    out.push(invalid(path, size, `should have at least ${node.minProperties} properties`))
  }
  const known = node.properties ?? {}
  for (const name of node.required ?? []) {
    if (value[name] === undefined) out.push({ path: under(path, name), message: 'Required value' })
  }
  for (const name of names) {
    if (out.length > MAX_PROBLEMS) return
    const item = value[name]
    if (!name.isWellFormed()) out.push(invalid(path, name, 'must be Unicode without lone surrogates'))
    const child = Object.hasOwn(known, name) ? known[name] : undefined
    if (child !== undefined) checkNode(child, item, under(path, name), out)
    else if (isObject(node.additionalProperties)) checkNode(node.additionalProperties, item, `${path}[${name}]`, out)
    else if (node.additionalProperties === false) out.push(unknownField(path, name, Object.keys(known)))
  }
}

function unknownField(path: string, name: string, known: readonly string[]): FieldProblem {
  const guess = closest(name, known)
  return {
    path: under(path, name),
    message: guess === null ? 'unknown field' : `unknown field, did you mean "${guess}"?`,
  }
}

/** `integer` is a whole number that a double holds exactly; every larger one is refused as `number`. */
function typeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return Number.isSafeInteger(value) ? 'integer' : 'number'
  return typeof value
}

function subject(path: string): string {
  return path === '' ? 'the object' : `${path} in body`
}

function wrongType(path: string, wanted: string, got: string): FieldProblem {
  return { path, message: `Invalid value: "${got}": ${subject(path)} must be of type ${wanted}: "${got}"` }
}

function invalid(path: string, value: unknown, why: string): FieldProblem {
  return { path, message: `Invalid value: ${JSON.stringify(value)}: ${subject(path)} ${why}` }
}

/** Patterns come from built-in schemas, never from users, so the map is bounded. */
const patterns = new Map<string, RegExp>()

function compiled(pattern: string): RegExp {
  const known = patterns.get(pattern)
  if (known !== undefined) return known
  const fresh = new RegExp(pattern, 'u')
  patterns.set(pattern, fresh)
  return fresh
}

import { isObject, type JsonObject } from '@plat/core'
import { RestError } from './error.ts'

/** Maximum number of operations in a JSON patch, as in Kubernetes. */
const OPERATIONS_MAX = 10_000

/** Maximum total size of the copies of one JSON patch, in characters of JSON: a patch cannot grow by doubling. */
const COPIES_MAX_CHARS = 1024 * 1024

/**
 * Maximum total cost of the operations of one JSON patch, in list elements moved by insertions and removals. Ten thousand operations at the head of
 * a list of 500 elements cost as much.
 */
const COST_MAX = 5_000_000

/** A test of an object lists its members, which costs as much as moving this many elements for each. */
const MEMBER_COST = 40

/** Maximum depth of a path or value in a patch. */
const DEPTH_MAX = 64

/** Applies a JSON merge patch (RFC 7386); the inputs are not modified. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch
  const merged = new Map(isObject(target) ? Object.entries(target) : [])
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) merged.delete(name)
    else merged.set(name, mergePatch(merged.get(name), value))
  }
  return Object.fromEntries(merged)
}

/** Applies a JSON patch (RFC 6902) to a copy. Throws 400 when it is malformed, 422 when it does not fit the object. */
export function jsonPatch(target: unknown, patch: unknown): unknown {
  if (!Array.isArray(patch)) throw new RestError(400, 'a JSON patch is a list of operations')
  if (patch.length > OPERATIONS_MAX) {
    throw new RestError(413, `a JSON patch has at most ${OPERATIONS_MAX} operations, this one has ${patch.length}`)
  }
  const root = { value: structuredClone(target), copiedChars: 0, cost: 0 }
  for (const [index, operation] of patch.entries()) apply(root, operation, `operation ${index}`)
  return root.value
}

interface Root {
  value: unknown
  copiedChars: number
  cost: number
}

function apply(root: Root, operation: unknown, at: string): void {
  if (!isObject(operation)) throw new RestError(400, `${at}: is not an object`)
  const { op } = operation
  const path = pointer(operation.path, `${at}: path`)
  if (op === 'add') add(root, path, copied(givenIn(operation, at)), at)
  else if (op === 'remove') take(root, path, at)
  else if (op === 'replace') put(root, path, copied(givenIn(operation, at)), at)
  else if (op === 'move') add(root, path, take(root, pointer(operation.from, `${at}: from`), at), at)
  else if (op === 'copy') add(root, path, copy(root, pointer(operation.from, `${at}: from`), at), at)
  else if (op === 'test') {
    const expected = givenIn(operation, at)
    if (!same(find(root, path, at), expected, (cost) => spend(root, cost, at)))
      throw unfit(`${at}: the test failed: ${operation.path}`)
  } else throw new RestError(400, `${at}: op: there are add, remove, replace, move, copy and test`)
}

function givenIn(operation: JsonObject, at: string): unknown {
  if (!Object.hasOwn(operation, 'value')) throw new RestError(400, `${at}: value: is missing`)
  return operation.value
}

/** A later operation may change the copy. `structuredClone` takes a microsecond for a number too. */
function copied(value: unknown): unknown {
  return typeof value === 'object' ? structuredClone(value) : value
}

/** Splits a JSON pointer (RFC 6901) into steps. */
function pointer(text: unknown, at: string): readonly string[] {
  if (typeof text !== 'string' || (text !== '' && !text.startsWith('/'))) {
    throw new RestError(400, `${at}: is not a JSON pointer, such as /spec/tier`)
  }
  const steps = text.split('/').slice(1)
  if (steps.length > DEPTH_MAX) throw new RestError(400, `${at}: is deeper than ${DEPTH_MAX}`)
  return steps.map((step) => (step.includes('~') ? unescaped(step) : step))
}

/** Replaces `~1` by `/` and `~0` by `~` in one pass: `replaceAll` needs 30 ms for a million of them. */
function unescaped(step: string): string {
  const units = Buffer.from(step, 'utf16le')
  let end = 0
  for (let at = 0; at < units.length; at += 2, end += 2) {
    const escaped = units[at] === TILDE && units[at + 1] === 0 && units[at + 3] === 0 ? units[at + 2] : undefined
    const isEscape = escaped === ZERO || escaped === ONE
    if (isEscape) at += 2
    units[end] = isEscape ? (escaped === ONE ? SLASH : TILDE) : (units[at] ?? 0)
    units[end + 1] = isEscape ? 0 : (units[at + 1] ?? 0)
  }
  return units.toString('utf16le', 0, end)
}

const SLASH = 0x2f
const ZERO = 0x30
const ONE = 0x31
const TILDE = 0x7e

function find(root: Root, path: readonly string[], at: string): unknown {
  let value = root.value
  for (const step of path) value = member(value, step, at)
  return value
}

function member(value: unknown, step: string, at: string): unknown {
  if (Array.isArray(value)) return value[indexOf(step, value.length - 1, at)]
  if (isObject(value) && Object.hasOwn(value, step)) return value[step]
  throw unfit(`${at}: there is no "${step}" in the object`)
}

function copy(root: Root, path: readonly string[], at: string): unknown {
  const text = JSON.stringify(find(root, path, at))
  root.copiedChars += text.length
  if (root.copiedChars > COPIES_MAX_CHARS) throw new RestError(413, `${at}: all copies together are too large`)
  return JSON.parse(text)
}

function add(root: Root, path: readonly string[], value: unknown, at: string): void {
  const last = path.at(-1)
  if (last === undefined) {
    root.value = value
    return
  }
  const parent = find(root, path.slice(0, -1), at)
  if (Array.isArray(parent)) {
    const index = last === '-' ? parent.length : indexOf(last, parent.length, at)
    spend(root, parent.length - index, at)
    parent.splice(index, 0, value)
  } else if (isObject(parent)) define(parent, last, value)
  else throw unfit(`${at}: "${last}" would stand in what is neither object nor list`)
}

/** `__proto__` is an ordinary name here. */
function define(parent: Record<string, unknown>, name: string, value: unknown): void {
  Object.defineProperty(parent, name, { value, enumerable: true, configurable: true, writable: true })
}

function take(root: Root, path: readonly string[], at: string): unknown {
  const last = path.at(-1)
  if (last === undefined) {
    const { value } = root
    root.value = null
    return value
  }
  const parent = find(root, path.slice(0, -1), at)
  const value = member(parent, last, at)
  if (Array.isArray(parent)) {
    const index = indexOf(last, parent.length - 1, at)
    spend(root, parent.length - index, at)
    parent.splice(index, 1)
  } else if (isObject(parent)) Reflect.deleteProperty(parent, last)
  return value
}

/** The target of a replacement must exist; no element moves. */
function put(root: Root, path: readonly string[], value: unknown, at: string): void {
  const last = path.at(-1)
  if (last === undefined) {
    root.value = value
    return
  }
  const parent = find(root, path.slice(0, -1), at)
  member(parent, last, at)
  if (Array.isArray(parent)) parent[indexOf(last, parent.length - 1, at)] = value
  else if (isObject(parent)) define(parent, last, value)
}

function spend(root: Root, cost: number, at: string): void {
  root.cost += cost
  if (root.cost > COST_MAX) throw new RestError(413, `${at}: the operations together move or compare too many elements`)
}

function indexOf(step: string, max: number, at: string): number {
  const index = /^(0|[1-9]\d{0,8})$/.test(step) ? Number(step) : -1
  if (index < 0 || index > max) throw unfit(`${at}: "${step}" is not a place in a list whose last is ${max}`)
  return index
}

/** Compares JSON values, ignoring the order of members. Calls `spend` for the cost of reading `a`. */
function same(a: unknown, b: unknown, spend: (cost: number) => void): boolean {
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, index) => same(item, b[index], spend))
  }
  if (!isObject(a)) return a === b
  if (!isObject(b)) return false
  const names = Object.keys(a)
  spend(MEMBER_COST * names.length)
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => Object.hasOwn(b, name) && same(a[name], b[name], spend))
  )
}

function unfit(message: string): RestError {
  return new RestError(422, `the patch does not fit the object: ${message}`)
}

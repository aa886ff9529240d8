import { accessSync, constants } from 'node:fs'
import { closest, isObject, JsonError, parseStrict } from '@plat/core'
import type { ConfigBlock, Problem } from './block.ts'
import { PACKED_SUFFIX } from './bounded.ts'
import { jsonProblem } from './json-problem.ts'
import { filledDefault, joinSchema, knownPaths, type Node } from './node.ts'
import { alternativeFor, faultOf, memberPath, parentPath } from './words.ts'

export interface CheckOptions {
  /** False: a misspelt key is not read as the intended one, so that rules see it missing. Default true. */
  readMisspelt?: boolean
  /** Returns whether a named file exists; default: checks the disk. */
  exists?: (path: string) => boolean
}

export interface CheckedConfig {
  /** The file with defaults filled in; only valid when no problem is an error. */
  config: Record<string, unknown>
  /** All problems, in the order of the file. */
  problems: Problem[]
}

/**
 * Checks a configuration file (docs/spec/gateway.md, loading rules 2 and 3) against its tables and reports everything at once: strict JSON, unknown
 * keys with a suggestion, types and ranges, missing files, and the rules of the blocks.
 */
export function checkConfig(text: string, blocks: readonly ConfigBlock[], options: CheckOptions = {}): CheckedConfig {
  const root = joinSchema(blocks)
  let input: unknown
  try {
    input = parseStrict(text)
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    return { config: {}, problems: [{ path: '', message: jsonMessage(text, error), severity: 'error' }] }
  }
  const walk = new Walk(root, options)
  const config = walk.value(root, input, '')
  if (!isObject(config)) return { config: {}, problems: walk.problems }
  const problems = [...walk.problems]
  const faulty = new Set(problems.map((problem) => problem.path))
  for (const problem of blocks.flatMap((block) => judge(block, config))) {
    // A value that is invalid itself is reported once.
    if (!faulty.has(problem.path)) problems.push(problem)
  }
  return { config, problems: inFileOrder(problems, walk.positions) }
}

function judge(block: ConfigBlock, config: Record<string, unknown>): Problem[] {
  let own: unknown = config
  for (const key of block.path === '' ? [] : block.path.split('.')) own = isObject(own) ? own[key] : undefined
  if (!isObject(own)) return []
  const values = own
  return (block.rules ?? []).flatMap((rule) => rule(values, config))
}

function jsonMessage(text: string, error: JsonError): string {
  const { line, column, message } = jsonProblem(text, error)
  return `line ${line}, column ${column}: ${message}`
}

/** Names the schema of the file for editors; it has no other effect. */
const SCHEMA_KEY = '$schema'

interface Position {
  start: number
  end: number
}

/** One walk over the file, in its own order, that collects problems and fills defaults. */
class Walk {
  readonly problems: Problem[] = []
  /** Position of each path in the file, counted in values. */
  readonly positions = new Map<string, Position>()
  readonly #root: Node
  readonly #readMisspelt: boolean
  readonly #exists: (path: string) => boolean
  #count = 0

  constructor(root: Node, { readMisspelt = true, exists = isReadable }: CheckOptions) {
    this.#root = root
    this.#readMisspelt = readMisspelt
    this.#exists = exists
  }

  /** Returns the value with defaults filled in; an invalid one is replaced by its default, so that rules see well-typed blocks. */
  value(node: Node, value: unknown, path: string): unknown {
    const start = this.#count++
    const result = this.#checked(node, value, path)
    this.positions.set(path, { start, end: this.#count - 1 })
    return result
  }

  #checked(given: Node, value: unknown, path: string): unknown {
    const node = given.anyOf === undefined ? given : alternativeFor(given.anyOf, value)
    if (typeof node === 'string') {
      this.#report(path, node)
      return filledDefault(given)
    }
    const fault = faultOf(node, value)
    if (fault !== null) {
      this.#report(path, fault)
      return filledDefault(node)
    }
    return this.#inside(node, value, path)
  }

  #inside(node: Node, value: unknown, path: string): unknown {
    if (node.file !== undefined && typeof value === 'string' && value !== '') this.#file(node.file, value, path)
    if (Array.isArray(value)) {
      const { items } = node
      return items === undefined ? value : value.map((item, index) => this.value(items, item, `${path}[${index}]`))
    }
    if (!isObject(value)) return value
    if (node.properties !== undefined) return this.#object(node, node.properties, value, path)
    return node.patternProperties === undefined ? value : this.#map(node.patternProperties, value, path)
  }

  #object(
    node: Node,
    properties: Readonly<Record<string, Node>>,
    value: Record<string, unknown>,
    path: string,
  ): unknown {
    const filled: Record<string, unknown> = {}
    for (const [written, member] of Object.entries(value)) {
      if (path === '' && written === SCHEMA_KEY) {
        if (typeof member !== 'string') this.#report(memberPath(path, written), 'must be a string')
        this.#pass(memberPath(path, written))
        continue
      }
      const key = Object.hasOwn(properties, written) ? written : this.#unknown(properties, written, path)
      if (key === null || (key !== written && Object.hasOwn(value, key))) continue
      const inner = properties[key]
      const result = inner === undefined ? member : this.value(inner, member, memberPath(path, written))
      if (result !== undefined) filled[key] = result
    }
    for (const [key, inner] of Object.entries(properties)) {
      if (Object.hasOwn(filled, key)) continue
      const preset = filledDefault(inner)
      if (preset !== undefined) filled[key] = preset
      else if (node.required?.includes(key) && !Object.hasOwn(value, key)) {
        this.#report(memberPath(path, key), 'is required')
      }
    }
    return filled
  }

  /** Returns the intended key, when it may be read as that one. */
  #unknown(properties: Readonly<Record<string, Node>>, written: string, path: string): string | null {
    const meant = closest(written, Object.keys(properties))
    const elsewhere = meant === null ? this.#elsewhere(written) : memberPath(path, meant)
    const message = elsewhere === null ? 'unknown key' : `unknown key; did you mean ${elsewhere}?`
    this.problems.push({ path: memberPath(path, written), message, severity: 'error', kind: 'unknown_key' })
    this.#pass(memberPath(path, written))
    return this.#readMisspelt ? meant : null
  }

  /** Returns a key that exists in another block. */
  #elsewhere(written: string): string | null {
    const ending = `.${written.toLowerCase()}`
    for (const path of knownPaths(this.#root)) if (`.${path.toLowerCase()}`.endsWith(ending)) return path
    return null
  }

  #map(patterns: Readonly<Record<string, Node>>, value: Record<string, unknown>, path: string): unknown {
    const filled: [string, unknown][] = []
    for (const [key, member] of Object.entries(value)) {
      const own = memberPath(path, key)
      const pattern = Object.entries(patterns).find(([source]) => new RegExp(source).test(key))
      if (pattern !== undefined) filled.push([key, this.value(pattern[1], member, own)])
      else {
        this.#report(own, `the name must match ${Object.keys(patterns).join(' or ')}`)
        this.#pass(own)
      }
    }
    return Object.fromEntries(filled)
  }

  #file(onMissing: NonNullable<Node['file']>, file: string, path: string): void {
    if (this.#exists(file)) return
    const text = JSON.stringify(file)
    const message =
      onMissing === 'fails closed'
        ? `no readable file ${text} yet; every call is denied until there is one`
        : `no readable file ${text}`
    const severity = onMissing === 'error' ? 'error' : 'warning'
    this.problems.push({ path, message, severity, kind: 'missing_file' })
  }

  /** Records the position of a value that is not checked. */
  #pass(path: string): void {
    const at = this.#count++
    this.positions.set(path, { start: at, end: at })
  }

  #report(path: string, message: string): void {
    this.problems.push({ path, message, severity: 'error' })
  }
}

function isReadable(path: string): boolean {
  return canRead(path) || canRead(path + PACKED_SUFFIX)
}

function canRead(path: string): boolean {
  try {
    accessSync(path, constants.R_OK)
    return true
  } catch {
    return false
  }
}

/** A missing key is placed at the end of its object. */
function inFileOrder(problems: readonly Problem[], positions: ReadonlyMap<string, Position>): Problem[] {
  const place = (path: string): number => {
    const exact = positions.get(path)
    if (exact !== undefined) return exact.start
    for (let up = parentPath(path); up !== null; up = parentPath(up)) {
      const around = positions.get(up)
      if (around !== undefined) return around.end + 0.5
    }
    return Number.POSITIVE_INFINITY
  }
  return problems
    .map((problem) => ({ problem, at: place(problem.path) }))
    .sort((a, b) => (a.at === b.at ? 0 : a.at - b.at))
    .map(({ problem }) => problem)
}

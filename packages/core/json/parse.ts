import { countMembers } from './count.ts'

/** As that of `JSON.parse`; nothing depends on the name, and no value is removed. */
export type Reviver = (name: string, value: unknown, context: { readonly source?: string }) => unknown

/** `JSON.parse` with a reviver, whose third parameter the types of ES2024 do not have. */
function parseRevived(text: string, reviver: Reviver): unknown {
  return Reflect.apply(JSON.parse, JSON, [text, reviver])
}

/** Longer texts are refused where the engine misreads them: reading each value alone takes many times as long. */
const MOST_CHARACTERS = 65_536
const BACKSLASH = '\\'
const BACKSLASH_CODE = 0x5c
const LOWER_U = 0x75
const COLON = 0x3a
const SPACE = 0x20

export const LONG_TEXT = 'a long text with member names whose escapes cannot be read'

/**
 * `JSON.parse` for text that passes `checkJson`. V8 compares an escaped name, as it is written, with the name that it expects from earlier
 * objects, as far as the unescaped name is long: after `{"a":1,"\\":1}`, it reads `{"a":1,"\u0062":1}` as an object with the members `a` and
 * `\`. What checks a message would not see what its receiver reads. Throws SyntaxError for a long text that is misread.
 */
export function parseChecked(text: string, reviver?: Reviver): unknown {
  if (reviver !== undefined)
    return namesIn(text) === null ? parseRevived(text, reviver) : new SingleValues(text, reviver).value()
  const value: unknown = JSON.parse(text)
  if (!isMisread(text, value)) return value
  const read = parseMisread(text)
  if (read === null) throw new SyntaxError(LONG_TEXT)
  return read.value
}

/** Returns the value of a text that the engine misreads, or null if the text is too long. */
export function parseMisread(text: string): { readonly value: unknown } | null {
  return text.length > MOST_CHARACTERS ? null : { value: new SingleValues(text, null).value() }
}

/**
 * Returns whether the engine misread names: it lost members, or found other names with a backslash, as a misread name always has one. `members`: those of
 * the text, all objects together; null: not counted.
 */
export function isMisread(text: string, value: unknown, members: number | null = null): boolean {
  const written = namesIn(text)
  if (written === null) return members !== null && members !== countMembers(value)
  const read = namesOf(value)
  if (written.members !== read.members || written.withBackslash.length !== read.withBackslash.length) return true
  const left = new Map<string, number>()
  for (const name of written.withBackslash) left.set(name, (left.get(name) ?? 0) + 1)
  for (const name of read.withBackslash) {
    const count = left.get(name) ?? 0
    if (count === 0) return true
    left.set(name, count - 1)
  }
  return false
}

/** Member names of all objects together. */
interface Names {
  readonly members: number
  /** Those that contain a backslash when unescaped. */
  readonly withBackslash: readonly string[]
}

/** Returns null if no name has an escape. */
function namesIn(text: string): Names | null {
  let nextEscape = text.indexOf(BACKSLASH)
  if (nextEscape === -1) return null
  const written: string[] = []
  let [members, isEscaped] = [0, false]
  for (let at = text.indexOf('"'); at !== -1; ) {
    const end = stringEnd(text, at)
    if (text.charCodeAt(skipSpace(text, end)) === COLON) {
      // Only names are followed by a colon.
      members++
      if (nextEscape !== -1 && nextEscape < at) nextEscape = text.indexOf(BACKSLASH, at)
      if (nextEscape !== -1 && nextEscape < end) {
        isEscaped = true
        if (hasBackslash(text, Math.max(at, nextEscape), end)) written.push(text.slice(at, end))
      }
    }
    at = text.indexOf('"', end)
  }
  return isEscaped ? { members, withBackslash: unescaped(written) } : null
}

/** Parsed at once: a call for each takes several times as long. As elements of a list they are not misread. */
function unescaped(written: readonly string[]): readonly string[] {
  const names: unknown = JSON.parse(`[${written.join(',')}]`)
  return Array.isArray(names) ? names.map(String) : []
}

/** Whether one of the escapes in a name, from the first at `at` on, is that of a backslash. */
function hasBackslash(text: string, at: number, end: number): boolean {
  for (let next = at; next !== -1 && next < end; next = text.indexOf(BACKSLASH, next + 2)) {
    const kind = text.charCodeAt(next + 1)
    if (kind === BACKSLASH_CODE) return true
    if (kind === LOWER_U && text.slice(next + 2, next + 6).toLowerCase() === '005c') return true
  }
  return false
}

function namesOf(value: unknown): Names {
  const withBackslash: string[] = []
  let members = 0
  const open: unknown[] = [value]
  while (open.length > 0) {
    const container = open.pop()
    if (typeof container !== 'object' || container === null) continue
    if (Array.isArray(container)) {
      for (const inner of container) if (typeof inner === 'object') open.push(inner)
      continue
    }
    for (const name of Object.keys(container)) {
      members++
      if (name.includes(BACKSLASH)) withBackslash.push(name)
      const inner: unknown = Reflect.get(container, name)
      if (typeof inner === 'object') open.push(inner)
    }
  }
  return { members, withBackslash }
}

/** Returns the offset after the string that starts at `at`. */
function stringEnd(text: string, at: number): number {
  for (let quote = text.indexOf('"', at + 1); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let first = quote
    while (text.charCodeAt(first - 1) === BACKSLASH_CODE) first--
    if ((quote - first) % 2 === 0) return quote + 1
  }
  return text.length
}

function skipSpace(text: string, at: number): number {
  let next = at
  while (text.charCodeAt(next) <= SPACE) next++
  return next
}

const SCALAR = /[^\s,\]}]+/y

/** Valid JSON, of which the engine parses each name and each scalar alone. */
class SingleValues {
  readonly #text: string
  readonly #reviver: Reviver | null
  #at = 0

  constructor(text: string, reviver: Reviver | null) {
    this.#text = text
    this.#reviver = reviver
  }

  value(): unknown {
    const first = this.#next()
    if (first === '{') return this.#revived(this.#object())
    return first === '[' ? this.#revived(this.#list()) : this.#scalar()
  }

  #object(): object {
    const object = {}
    while (this.#continues('}')) {
      const name = String(this.#parsed(stringEnd(this.#text, this.#at)))
      this.#next()
      this.#at++
      const value = this.value()
      // Not by assignment: a member may be called __proto__.
      Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true })
    }
    return object
  }

  #list(): unknown[] {
    const list: unknown[] = []
    while (this.#continues(']')) list.push(this.value())
    return list
  }

  #scalar(): unknown {
    SCALAR.lastIndex = this.#at
    const isString = this.#text[this.#at] === '"'
    const end = isString ? stringEnd(this.#text, this.#at) : SCALAR.test(this.#text) ? SCALAR.lastIndex : this.#at
    const source = this.#text.slice(this.#at, end)
    return this.#revived(this.#parsed(end), source)
  }

  #parsed(end: number): unknown {
    const source = this.#text.slice(this.#at, end)
    this.#at = end
    return JSON.parse(source)
  }

  /** Passes over the bracket or comma before the next element; returns false, and passes over it, at the last bracket. */
  #continues(last: string): boolean {
    if (this.#next() !== last) {
      this.#at++
      if (this.#next() !== last) return true
    }
    this.#at++
    return false
  }

  /** Returns the next character that is not white space. */
  #next(): string | undefined {
    this.#at = skipSpace(this.#text, this.#at)
    return this.#text[this.#at]
  }

  #revived(value: unknown, source?: string): unknown {
    return this.#reviver === null ? value : this.#reviver('', value, source === undefined ? {} : { source })
  }
}

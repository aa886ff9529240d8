import { skipSpace } from './check.ts'
import { nameOf } from './names.ts'
import { skipTrusted } from './trusted.ts'

/** Byte range: `start` included, `end` not. */
export type Span = readonly [start: number, end: number]

const QUOTE = 0x22
const COMMA = 0x2c
const BACKSLASH = 0x5c
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/** A member found in the bytes, with what is needed to cut it out. */
interface Member {
  /** Where the value before this member ended; for the first member, the byte after the brace. */
  readonly previousEnd: number
  readonly nameStart: number
  readonly valueStart: number
}

/**
 * The byte range of the value that `path` leads to through nested objects; an empty path is the whole value. Null when a
 * member is missing or a value on the way is no object. The input must have passed `checkJson`.
 */
export function findSpan(bytes: Uint8Array, path: readonly string[]): Span | null {
  let start = skipSpace(bytes, 0)
  for (const name of path) {
    const member = findMember(bytes, start, name)
    if (member === null) return null
    start = member.valueStart
  }
  return [start, skipValue(bytes, start)]
}

/**
 * The same bytes without the members that `paths` lead to: each is cut out with one comma, every other byte stays as it
 * was. A path that leads nowhere cuts nothing; when nothing is cut the answer is the input itself.
 * The input must have passed `checkJson`.
 */
export function withoutMembers(bytes: Uint8Array, paths: readonly (readonly string[])[]): Uint8Array {
  return paths.reduce(withoutMember, bytes)
}

function withoutMember(bytes: Uint8Array, path: readonly string[]): Uint8Array {
  const name = path.at(-1)
  if (name === undefined) return bytes
  const parent = findSpan(bytes, path.slice(0, -1))
  const member = parent && findMember(bytes, parent[0], name)
  if (!member) return bytes
  const end = skipValue(bytes, member.valueStart)
  const after = skipSpace(bytes, end)
  // With a follower the comma behind goes, else what stands before: the comma, or nothing but white space.
  if (bytes[after] === COMMA) return spliced(bytes, member.nameStart, skipSpace(bytes, after + 1))
  return spliced(bytes, member.previousEnd, end)
}

function spliced(bytes: Uint8Array, from: number, to: number): Uint8Array {
  const rest = new Uint8Array(bytes.length - (to - from))
  rest.set(bytes.subarray(0, from))
  rest.set(bytes.subarray(to), from)
  return rest
}

function findMember(bytes: Uint8Array, object: number, wanted: string): Member | null {
  if (bytes[object] !== OPEN_OBJECT) return null
  let previousEnd = object + 1
  let nameStart = skipSpace(bytes, previousEnd)
  while (bytes[nameStart] === QUOTE) {
    const nameEnd = skipTrusted(bytes, nameStart)
    const valueStart = skipSpace(bytes, skipSpace(bytes, nameEnd) + 1)
    if (isNamed(bytes, nameStart + 1, nameEnd - 1, wanted)) return { previousEnd, nameStart, valueStart }
    previousEnd = skipValue(bytes, valueStart)
    nameStart = skipSpace(bytes, skipSpace(bytes, previousEnd) + 1)
  }
  return null
}

/** Compares where the bytes stand; a name becomes a string only where it is the same up to an escape or a byte beyond ASCII. */
function isNamed(bytes: Uint8Array, start: number, end: number, wanted: string): boolean {
  for (let at = start; at < end; at++) {
    const byte = bytes[at] ?? 0
    if (byte === BACKSLASH || byte > 0x7f) return nameOf(bytes, start, end) === wanted
    if (byte !== wanted.charCodeAt(at - start)) return false
  }
  return end - start === wanted.length
}

/** Byte after the value that starts at `at`, of input that is known to be JSON. */
function skipValue(bytes: Uint8Array, at: number): number {
  let depth = 0
  let next = at
  do {
    const byte = bytes[next]
    if (byte === QUOTE) next = skipTrusted(bytes, next)
    else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      depth++
      next++
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
      depth--
      next++
    } else if (depth > 0) next++
    else next = skipWord(bytes, next)
  } while (depth > 0 && next < bytes.length)
  return next
}

/** Byte after a number, `true`, `false` or `null`. */
function skipWord(bytes: Uint8Array, at: number): number {
  let next = at
  for (let byte = bytes[next]; byte !== undefined && !endsWord(byte); byte = bytes[next]) next++
  return next
}

function endsWord(byte: number): boolean {
  return byte <= 0x20 || byte === COMMA || byte === CLOSE_ARRAY || byte === CLOSE_OBJECT
}

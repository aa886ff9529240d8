import { isNumberByte, MAX_NUMBER_BYTES, skipTrustedNumber } from './numbers.ts'
import { skipTrusted } from './trusted.ts'

const SPACE = 0x20
const QUOTE = 0x22
const COLON = 0x3a
const BACKSLASH = 0x5c

/** Kinds of bytes outside of strings; 0: commas, colons, white space and letters, which a walk passes over. */
const STRING = 1
const NUMBER = 2
const OPEN = 3
const CLOSE = 4
const KINDS = new Uint8Array(256)
KINDS[QUOTE] = STRING
for (const byte of Buffer.from('-0123456789')) KINDS[byte] = NUMBER
for (const byte of Buffer.from('[{')) KINDS[byte] = OPEN
for (const byte of Buffer.from(']}')) KINDS[byte] = CLOSE

/** Most whole numbers have fewer digits. */
const SHORT_NUMBER = 16

/** Longer names, names with escapes and the names of larger objects are counted instead of compared. */
const COMPARED_BYTES = 48
const COMPARED_NAMES = 16
/** Instead of the number of an object's listed names. */
const COUNTED = -1

/** Names of objects nested deeper are counted. */
const COMPARED_DEPTH = 64
/** By depth: how many names of the open object are listed. Walking is synchronous and never nests, so one list serves the process. */
const listed = new Int32Array(COMPARED_DEPTH)
/** `COMPARED_NAMES` by depth: where a name starts, and its length with its first and last byte, which most names differ in. */
const starts = new Int32Array(COMPARED_DEPTH * COMPARED_NAMES)
const marks = new Int32Array(COMPARED_DEPTH * COMPARED_NAMES)

/** Result of a walk: the input breaks a rule, or is not JSON. */
export const NOT_STRICT = -1

/**
 * Looks for two members of one name, nesting that is too deep, too many members and numbers that are too long, in input whose grammar
 * `JSON.parse` checks. Null: there is none, if the bytes are JSON in UTF-8. A number: the same, if the parsed value has so many members, all objects
 * together; of two members of one name it would keep one.
 */
export function walk(bytes: Uint8Array, maxDepth: number, maxMembers: number): number | typeof NOT_STRICT | null {
  const { length } = bytes
  let depth = 0
  let members = 0
  let isCounted = false
  let at = 0
  while (at < length) {
    const kind = KINDS[bytes[at] ?? 0]
    if (kind === STRING) {
      const start = at + 1
      const near = Math.min(start + COMPARED_BYTES, length - 1)
      let end = start
      while (end < near && bytes[end] !== QUOTE && bytes[end] !== BACKSLASH) end++
      const isShort = bytes[end] === QUOTE
      at = isShort ? end + 1 : skipTrusted(bytes, at)
      while (at < length && (bytes[at] ?? 0) <= SPACE) at++
      // Only names are followed by a colon.
      if (at === length || bytes[at] !== COLON) continue
      if (depth === 0 || ++members > maxMembers) return NOT_STRICT
      const count = depth > COMPARED_DEPTH ? COUNTED : listed[depth - 1]
      if (!isShort || count === COUNTED || count === COMPARED_NAMES) {
        listed[depth - 1] = COUNTED
        isCounted = true
      } else if (isListed(bytes, depth - 1, start, end)) return NOT_STRICT
    } else if (kind === NUMBER) {
      let end = at + 1
      const near = Math.min(end + SHORT_NUMBER, length)
      while (end < near && KINDS[bytes[end] ?? 0] === NUMBER) end++
      if (end < length && isNumberByte(bytes[end])) end = skipTrustedNumber(bytes, at)
      if (end - at > MAX_NUMBER_BYTES) return NOT_STRICT
      at = end
    } else {
      if (kind === OPEN) {
        if (depth === maxDepth) return NOT_STRICT
        listed[depth++] = 0
      } else if (kind === CLOSE && depth-- === 0) return NOT_STRICT
      at++
    }
  }
  return isCounted ? members : null
}

/** Returns whether the open object at `depth` has the name already; lists it otherwise. */
function isListed(bytes: Uint8Array, depth: number, start: number, end: number): boolean {
  const length = end - start
  const mark = (length << 16) | ((bytes[start] ?? 0) << 8) | (bytes[end - 1] ?? 0)
  const base = depth * COMPARED_NAMES
  const count = listed[depth] ?? 0
  for (let slot = base; slot < base + count; slot++) {
    if (marks[slot] === mark && isSame(bytes, starts[slot] ?? 0, start, length)) return true
  }
  starts[base + count] = start
  marks[base + count] = mark
  listed[depth] = count + 1
  return false
}

function isSame(bytes: Uint8Array, one: number, other: number, length: number): boolean {
  for (let at = 0; at < length; at++) if (bytes[one + at] !== bytes[other + at]) return false
  return true
}

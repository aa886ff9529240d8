import { isUtf8 } from 'node:buffer'
import { MemberNames, textOf } from './names.ts'
import { endOfNumber, isNumberByte, MAX_NUMBER_BYTES } from './numbers.ts'
import { isMisread, LONG_TEXT, parseMisread } from './parse.ts'
import { NOT_STRICT, walk } from './walk.ts'

/** Deepest nesting of arrays and objects that any part accepts. */
export const MAX_JSON_DEPTH = 64

/** Options of strict parsing. */
export interface JsonOptions {
  /** Containers inside each other; default `MAX_JSON_DEPTH`. */
  readonly maxDepth?: number
  /** Members of all objects together; default: any number. */
  readonly maxMembers?: number
}

/**
 * Limits of a message from a caller or an upstream. `JSON.parse` holds the event loop for 50 to 70 ms for 100,000 different names, and for
 * up to a second for the 500,000 that fit into 4 MiB.
 */
export const MESSAGE_LIMITS: JsonOptions = { maxMembers: 100_000 }

const NO_OPTIONS: JsonOptions = {}

/** More than any input has, and a small integer to the engine. */
const ANY_MEMBERS = 0x3fff_ffff

/** Input that is not strict JSON. The message names what is wrong and never quotes the input. */
export class JsonError extends Error {
  /** Byte at which reading stopped. */
  readonly offset: number

  constructor(what: string, offset: number) {
    super(`${what} at byte ${offset}`)
    this.name = 'JsonError'
    this.offset = offset
  }
}

const TAB = 0x09
const LINE_FEED = 0x0a
const RETURN = 0x0d
const SPACE = 0x20
const QUOTE = 0x22
const PLUS = 0x2b
const COMMA = 0x2c
const MINUS = 0x2d
const DOT = 0x2e
const ZERO = 0x30
const NINE = 0x39
const COLON = 0x3a
const UPPER_E = 0x45
const LOWER_E = 0x65
const BACKSLASH = 0x5c
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/** Bytes that may follow a backslash, `u` with its four hex digits apart. */
const ESCAPES = new Set(Buffer.from('"\\/bfnrt'))
const LOWER_U = 0x75
const HEX_DIGITS = 4

const LITERALS = [Buffer.from('true'), Buffer.from('false'), Buffer.from('null')]

/** Scratch of the scanner. Scanning is synchronous and never nests, so one serves the process. */
const names = new MemberNames()

/**
 * Accepts exactly one JSON value (RFC 8259) in valid UTF-8, without a byte order mark, without trailing data, without two
 * members of one object whose names are equal after unescaping, without a number literal longer than `MAX_NUMBER_BYTES`, and not nested
 * deeper than allowed.
 * One pass over the bytes and no recursion, so deep input costs no stack.
 * @throws JsonError
 */
export function checkJson(bytes: Uint8Array, options?: JsonOptions): void {
  if (!isUtf8(bytes)) throw new JsonError('invalid UTF-8', validUtf8Length(bytes))
  names.reset(bytes, options?.maxMembers ?? ANY_MEMBERS)
  try {
    const end = scan(bytes, options?.maxDepth ?? MAX_JSON_DEPTH)
    if (end < bytes.length) throw new JsonError('data after the value', end)
  } finally {
    names.release()
  }
}

/** Offset of the first bytes that are not UTF-8; decoding replaces them by U+FFFD, which the bytes themselves may contain as well. */
function validUtf8Length(bytes: Uint8Array): number {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString()
  let offset = 0
  for (let from = 0; ; ) {
    const at = text.indexOf('\ufffd', from)
    if (at === -1) return offset
    offset += Buffer.byteLength(text.slice(from, at))
    if (bytes[offset] !== 0xef || bytes[offset + 1] !== 0xbf || bytes[offset + 2] !== 0xbd) return offset
    offset += 3
    from = at + 1
  }
}

/** JSON that passes `checkJson`. */
export interface StrictJson {
  readonly value: unknown
  /** The bytes as text. */
  readonly text: string
}

/** Returns the value of JSON that passes `checkJson`. Throws JsonError. */
export function parseStrict(input: Uint8Array | string, options?: JsonOptions): unknown {
  return readStrict(input, options).value
}

/**
 * Returns the value of JSON that passes `checkJson`, with its text. `JSON.parse` checks the grammar, so that only the additional rules are
 * checked here. Throws JsonError.
 */
export function readStrict(input: Uint8Array | string, options: JsonOptions = NO_OPTIONS): StrictJson {
  const bytes = typeof input === 'string' ? Buffer.from(input) : input
  try {
    const { maxDepth = MAX_JSON_DEPTH, maxMembers = ANY_MEMBERS } = options
    const found = isUtf8(bytes) ? walk(bytes, maxDepth, maxMembers) : NOT_STRICT
    if (found !== NOT_STRICT) {
      const text = typeof input === 'string' ? input : textOf(bytes, 0, bytes.length)
      const value: unknown = JSON.parse(text)
      if (found === null) return { value, text }
      const read = isExact(input) ? value : JSON.parse(textOf(bytes, 0, bytes.length))
      if (!isMisread(text, read, found)) return { value, text }
    }
  } catch {
    // Not JSON: the scan below finds the error and its offset. Otherwise the engine has misread it.
  }
  checkJson(bytes, options)
  const text = typeof input === 'string' ? input : textOf(bytes, 0, bytes.length)
  const read = parseMisread(text)
  if (read === null) throw new JsonError(LONG_TEXT, 0)
  return { value: read.value, text }
}

/** Names that differ only in lone surrogates are equal as bytes. */
function isExact(input: Uint8Array | string): boolean {
  return typeof input !== 'string' || input.isWellFormed()
}

/** Scans one value; answers the first byte after it and after the white space that follows. */
function scan(bytes: Uint8Array, maxDepth: number): number {
  let depth = 0
  let isObject = false
  let at = skipSpace(bytes, 0)
  while (true) {
    const first = bytes[at]
    if (first === OPEN_OBJECT || first === OPEN_ARRAY) {
      if (depth === maxDepth) throw new JsonError(`nested deeper than ${maxDepth}`, at)
      isObject = first === OPEN_OBJECT
      names.open(depth++, isObject)
      at = skipSpace(bytes, at + 1)
      if (bytes[at] !== (isObject ? CLOSE_OBJECT : CLOSE_ARRAY)) {
        if (isObject) at = memberName(bytes, at, depth - 1)
        continue
      }
    } else {
      at = skipScalar(bytes, at)
      // Usually there is none: checked here, since the loop is too large for the engine to inline it.
      if ((bytes[at] ?? 0) <= SPACE) at = skipSpace(bytes, at)
    }
    // A value has ended: close its containers, until a comma announces the next value.
    while (depth > 0 && bytes[at] !== COMMA) {
      depth--
      if (bytes[at] !== (isObject ? CLOSE_OBJECT : CLOSE_ARRAY)) throw unexpected(bytes, at)
      isObject = depth > 0 && names.isObject(depth - 1)
      at = skipSpace(bytes, at + 1)
    }
    if (depth === 0) return at
    at++
    if ((bytes[at] ?? 0) <= SPACE) at = skipSpace(bytes, at)
    if (isObject) at = memberName(bytes, at, depth - 1)
  }
}

/** First byte from `at` on that is not JSON whitespace. */
export function skipSpace(bytes: Uint8Array, at: number): number {
  let next = at
  while (next < bytes.length && isSpace(bytes[next] ?? 0)) next++
  return next
}

function isSpace(byte: number): boolean {
  return byte <= SPACE && (byte === SPACE || byte === LINE_FEED || byte === RETURN || byte === TAB)
}

/** Byte after the string that starts at `at`. Throws `JsonError`. */
export function skipString(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== QUOTE) throw unexpected(bytes, at)
  let next = at + 1
  while (true) {
    const byte = bytes[next]
    if (byte === QUOTE) return next + 1
    if (byte === undefined) throw new JsonError('a string without its end', at)
    if (byte < SPACE) throw new JsonError('a control character in a string', next)
    next = byte === BACKSLASH ? skipEscape(bytes, next) : next + 1
  }
}

/** Reads a member's name and its colon; answers where the value starts. */
function memberName(bytes: Uint8Array, at: number, depth: number): number {
  const end = skipString(bytes, at)
  if (names.seen(depth, at + 1, end - 1)) throw new JsonError('a duplicate member name', at)
  if (names.isFull) throw new JsonError('too many members', at)
  const colon = skipSpace(bytes, end)
  if (bytes[colon] !== COLON) throw unexpected(bytes, colon)
  return skipSpace(bytes, colon + 1)
}

function skipEscape(bytes: Uint8Array, at: number): number {
  const kind = bytes[at + 1]
  if (kind === undefined) throw new JsonError('a string without its end', at)
  if (kind !== LOWER_U) {
    if (!ESCAPES.has(kind)) throw new JsonError('an unknown escape', at)
    return at + 2
  }
  const end = at + 2 + HEX_DIGITS
  for (let next = at + 2; next < end; next++) if (!isHex(bytes[next])) throw new JsonError('an unknown escape', at)
  return end
}

function skipScalar(bytes: Uint8Array, at: number): number {
  const first = bytes[at]
  if (first === QUOTE) return skipString(bytes, at)
  if (first === MINUS || isDigit(first)) return skipNumber(bytes, at)
  for (const literal of LITERALS) if (startsAt(bytes, at, literal)) return at + literal.length
  throw unexpected(bytes, at)
}

function skipNumber(bytes: Uint8Array, at: number): number {
  // Only a literal that is too long has a byte of numbers there.
  if (isNumberByte(bytes[at + MAX_NUMBER_BYTES]) && endOfNumber(bytes, at) - at > MAX_NUMBER_BYTES)
    throw new JsonError(`a number longer than ${MAX_NUMBER_BYTES} characters`, at)
  let next = bytes[at] === MINUS ? at + 1 : at
  next = bytes[next] === ZERO ? next + 1 : skipDigits(bytes, next)
  if (bytes[next] === COMMA) return next
  if (bytes[next] === DOT) next = skipDigits(bytes, next + 1)
  const exponent = bytes[next]
  if (exponent === LOWER_E || exponent === UPPER_E) {
    const sign = bytes[next + 1]
    next = skipDigits(bytes, sign === PLUS || sign === MINUS ? next + 2 : next + 1)
  }
  return next
}

function skipDigits(bytes: Uint8Array, at: number): number {
  if (!isDigit(bytes[at])) throw unexpected(bytes, at)
  let next = at + 1
  while (isDigit(bytes[next])) next++
  return next
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= NINE
}

function isHex(byte: number | undefined): boolean {
  if (byte === undefined) return false
  const lower = byte | 0x20
  return isDigit(byte) || (lower >= 0x61 && lower <= 0x66)
}

function startsAt(bytes: Uint8Array, at: number, word: Uint8Array): boolean {
  for (let index = 0; index < word.length; index++) if (bytes[at + index] !== word[index]) return false
  return true
}

function unexpected(bytes: Uint8Array, at: number): JsonError {
  return at >= bytes.length
    ? new JsonError('the value ends too early', at)
    : new JsonError('an unexpected character', at)
}

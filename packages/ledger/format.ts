import { hash } from 'node:crypto'

/** Prefix of every hashed line (ledger line format, version 1). */
export const HASH_DOMAIN = 'plat-ledger-v1\n'

/** `prev` of the genesis record. */
export const ZERO_HASH = '0'.repeat(64)

/** Maximum line length in bytes without LF. The writer stays far below; a verifier needs no larger buffer. */
export const MAX_LINE_BYTES = 1024 * 1024

/** End of a chain: number and hash of the last record. */
export interface Head {
  readonly seq: number
  readonly hash: string
}

/** Maximum bytes of a line around its record, including LF. */
const FRAME_BYTES = 256
/** Maximum UTF-8 bytes per UTF-16 unit. */
const UNIT_BYTES = 3

/** Returns the maximum bytes of the line of this record. */
export function lineRoom(rec: string): number {
  return FRAME_BYTES + rec.length * UNIT_BYTES
}

/** Where to write a line, and the hash of the previous record. */
export interface LinePlace {
  readonly buffer: Buffer
  readonly at: number
  readonly prev: string
}

/** A finished line: the offset of its end in the buffer, including LF, and its hash. */
export interface SealedLine {
  readonly hash: string
  readonly end: number
}

// Fixed offsets of a line: {"hash":"<64>","prev":"<64>","rec":{
const HASH_START = '{"hash":"'.length
const HASH_END = HASH_START + 64
const BODY_START = HASH_END + '",'.length
const PREV_START = BODY_START + '"prev":"'.length
const PREV_END = PREV_START + 64
const LINE_START = Buffer.from('{"hash":"')
const PREV_WORD = Buffer.from('","prev":"')
const REC_WORD = Buffer.from('","rec":{')
const LINE_END = Buffer.from(',"v":1}')
const SEQ_WORD = Buffer.from('},"seq":')
const LF = 0x0a
const DIGIT_0 = 0x30
const DIGIT_9 = 0x39
const DOMAIN = Buffer.from(HASH_DOMAIN)
const SHORTEST_LINE = PREV_END + REC_WORD.length + SEQ_WORD.length + 1 + LINE_END.length
/** Offset of the record's opening brace. */
export const REC_START = PREV_END + REC_WORD.length - 1
/** 2^53 has sixteen digits. */
const LONGEST_SEQ = 16

/** Writes the line of a record (canonical JSON) at `at`: `{"hash":…,"prev":…,"rec":…,"seq":n,"v":1}`. Caller must provide `lineRoom`. */
export function sealLine({ buffer, at, prev }: LinePlace, rec: string, seq: number): SealedLine {
  put(buffer, at, LINE_START)
  put(buffer, at + HASH_END, PREV_WORD)
  buffer.write(prev, at + PREV_START, 'latin1')
  put(buffer, at + PREV_END, REC_WORD)
  // The words around the record include its braces.
  let end = at + REC_START
  end += buffer.write(rec, end)
  end = put(buffer, end - 1, SEQ_WORD)
  end += buffer.write(String(seq), end, 'latin1')
  end = put(buffer, end, LINE_END)
  // The domain temporarily replaces the hash, so that the hashed bytes are contiguous.
  const from = at + BODY_START - DOMAIN.length
  put(buffer, from, DOMAIN)
  const digest = hash('sha256', buffer.subarray(from, end), 'hex')
  buffer.write(digest, at + HASH_START, 'latin1')
  put(buffer, at + HASH_END, PREV_WORD)
  buffer[end] = LF
  return { hash: digest, end: end + 1 }
}

/** Writes a word of the frame; returns its end. Copying so short a word in a loop is faster than a native call. */
function put(buffer: Buffer, at: number, word: Buffer): number {
  for (let index = 0; index < word.length; index++) buffer[at + index] = word[index] ?? 0
  return at + word.length
}

/** Fixed members of a line. `hash` is verified against the bytes of the line. */
export interface RawLine {
  readonly hash: string
  readonly prev: string
  readonly seq: number
  /** Offset of the byte after the record, from the start of the line. */
  readonly recEnd: number
  /** Length of the line in bytes without its LF. */
  readonly length: number
}

/**
 * Parses a line from its raw bytes without parsing the record, and verifies its hash. Returns a string when it is invalid. Bytes before `start` are
 * not modified; those inside are overwritten temporarily for hashing. `expected`: the likely `prev`, which need not be copied then.
 */
export function readRawLine(buffer: Buffer, start: number, end: number, expected = ''): RawLine | string {
  const seqStart = seqStartOf(buffer, start, end)
  if (typeof seqStart === 'string') return seqStart
  const digest = bodyHash(buffer, start, end)
  if (!hasText(buffer, start + HASH_START, digest)) return 'the hash does not match the line'
  const isExpected = expected !== '' && hasText(buffer, start + PREV_START, expected)
  const prev = isExpected ? expected : buffer.toString('latin1', start + PREV_START, start + PREV_END)
  const recEnd = seqStart - SEQ_WORD.length + 1 - start
  return { hash: digest, prev, seq: seqAt(buffer, seqStart, end - LINE_END.length), recEnd, length: end - start }
}

/** The bytes that the domain overwrites, for the time of hashing. */
const overwritten = Buffer.alloc(DOMAIN.length)

/** SHA-256 over the domain and the bytes from `"prev"` on: the domain overwrites the hash, so nothing is copied. */
function bodyHash(buffer: Buffer, start: number, end: number): string {
  const from = start + BODY_START - DOMAIN.length
  for (let index = 0; index < DOMAIN.length; index++) overwritten[index] = buffer[from + index] ?? 0
  put(buffer, from, DOMAIN)
  const digest = hash('sha256', buffer.subarray(from, end), 'hex')
  put(buffer, from, overwritten)
  return digest
}

/** Compares ASCII text without creating a string. */
function hasText(buffer: Buffer, at: number, text: string): boolean {
  for (let index = 0; index < text.length; index++) if (buffer[at + index] !== text.charCodeAt(index)) return false
  return true
}

/** Returns the number whose digits are from `at` to `end`. */
function seqAt(buffer: Buffer, at: number, end: number): number {
  let seq = 0
  for (let index = at; index < end; index++) seq = seq * 10 + ((buffer[index] ?? 0) - DIGIT_0)
  return seq
}

/** Returns the offset of the digits of `seq` in a line of the right form, or what is wrong. */
function seqStartOf(buffer: Buffer, start: number, end: number): number | string {
  if (end - start < SHORTEST_LINE) return 'the line is too short for a record'
  const fixed =
    has(buffer, start, LINE_START) &&
    has(buffer, start + HASH_END, PREV_WORD) &&
    has(buffer, start + PREV_END, REC_WORD) &&
    has(buffer, end - LINE_END.length, LINE_END)
  if (!fixed) return 'the line is not of the form {"hash":…,"prev":…,"rec":{…},"seq":n,"v":1}'
  const seqEnd = end - LINE_END.length
  let at = seqEnd
  while (seqEnd - at < LONGEST_SEQ && isDigit(buffer[at - 1])) at--
  const isCanonical = seqEnd - at === 1 || (at < seqEnd && buffer[at] !== DIGIT_0)
  const isExact = seqEnd - at < LONGEST_SEQ || Number.isSafeInteger(seqAt(buffer, at, seqEnd))
  if (!isCanonical || !isExact || !has(buffer, at - SEQ_WORD.length, SEQ_WORD)) return 'the line has no proper "seq"'
  return at
}

function isDigit(byte = 0): boolean {
  return byte >= DIGIT_0 && byte <= DIGIT_9
}

function has(buffer: Buffer, at: number, word: Buffer): boolean {
  for (let index = 0; index < word.length; index++) if (buffer[at + index] !== word[index]) return false
  return true
}

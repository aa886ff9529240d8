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
 * not modified; those inside are overwritten temporarily for hashing.
 */
export function readRawLine(buffer: Buffer, start: number, end: number): RawLine | string {
  const shape = lineShape(buffer, start, end)
  if (typeof shape === 'string') return shape
  const digest = buffer.toString('latin1', start + HASH_START, start + HASH_END)
  if (bodyHash(buffer, start, end) !== digest) return 'the hash does not match the line'
  const prev = buffer.toString('latin1', start + PREV_START, start + PREV_END)
  return { hash: digest, prev, seq: shape.seq, recEnd: shape.recEnd, length: end - start }
}

/** SHA-256 over the domain and the bytes from `"prev"` on: the domain overwrites the hash, so nothing is copied. */
function bodyHash(buffer: Buffer, start: number, end: number): string {
  const from = start + BODY_START - DOMAIN.length
  const before = buffer.toString('latin1', from, from + DOMAIN.length)
  put(buffer, from, DOMAIN)
  const digest = hash('sha256', buffer.subarray(from, end), 'hex')
  buffer.write(before, from, 'latin1')
  return digest
}

function lineShape(buffer: Buffer, start: number, end: number): { seq: number; recEnd: number } | string {
  if (end - start < SHORTEST_LINE) return 'the line is too short for a record'
  const fixed =
    has(buffer, start, LINE_START) &&
    has(buffer, start + HASH_END, PREV_WORD) &&
    has(buffer, start + PREV_END, REC_WORD) &&
    has(buffer, end - LINE_END.length, LINE_END)
  if (!fixed) return 'the line is not of the form {"hash":…,"prev":…,"rec":{…},"seq":n,"v":1}'
  let at = end - LINE_END.length
  let seq = 0
  for (let scale = 1, digits = 0; digits < LONGEST_SEQ; digits++, scale *= 10) {
    const digit = (buffer[at - 1] ?? 0) - 0x30
    if (digit < 0 || digit > 9) break
    seq += digit * scale
    at--
  }
  if (
    !has(buffer, at - SEQ_WORD.length, SEQ_WORD) ||
    buffer.toString('latin1', at, end - LINE_END.length) !== String(seq)
  ) {
    return 'the line has no proper "seq"'
  }
  return { seq, recEnd: at - SEQ_WORD.length + 1 - start }
}

function has(buffer: Buffer, at: number, word: Buffer): boolean {
  for (let index = 0; index < word.length; index++) if (buffer[at + index] !== word[index]) return false
  return true
}

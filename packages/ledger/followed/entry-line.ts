import { createHash } from 'node:crypto'
import { type Head, MAX_LINE_BYTES, readRawLine } from '../format.ts'

/** A line of a followed ledger. `hash` is verified against its bytes, `signature` is not. */
export interface FollowedLine extends Head {
  readonly prev: string
  /** Ed25519 signature of the line's hash; null when the line has none. */
  readonly signature: Buffer | null
}

/** Prefix of the hashed bytes of an entry (docs/followed-ledgers.md). */
const ENTRY_DOMAIN = 'open-ledger-entry-v1\n'
/** Prefix of the signed text of an entry. */
const HEAD_DOMAIN = 'open-ledger-head-v1\n'

const HASH_WORD = Buffer.from('{"hash":"')
const SIG_WORD = Buffer.from('","sig":"')
const ENTRY_WORD = Buffer.from('","entry":')
const SEQ_WORD = Buffer.from('{"seq":')
const PREV_WORD = Buffer.from(',"prev":"')
const HASH_DIGITS = 64
const SIG_DIGITS = 128
/** 2^53 has sixteen digits. */
const LONGEST_SEQ = 16
const HEX = /^[0-9a-f]+$/
const WHOLE = /^(?:0|[1-9]\d{0,15})$/
const [COMMA, QUOTE, BRACE] = [0x2c, 0x22, 0x7d]

/** Returns the text that the signature of a line is over. */
export function signedTextOf(hash: string): Buffer {
  return Buffer.from(`${HEAD_DOMAIN}${hash}\n`)
}

/** Parses a line of the open format or of plat's own, and verifies its hash. Returns a string when it is invalid. */
export function readFollowedLine(buffer: Buffer, start: number, end: number): FollowedLine | string {
  if (end - start > MAX_LINE_BYTES) return 'the line is too long'
  const open = readEntryLine(buffer, start, end)
  if (open !== null) return open
  const line = readRawLine(buffer, start, end)
  return typeof line === 'string' ? line : { seq: line.seq, hash: line.hash, prev: line.prev, signature: null }
}

/** Returns null when the line is not of the open format. */
function readEntryLine(buffer: Buffer, start: number, end: number): FollowedLine | string | null {
  const line = buffer.subarray(start, end)
  const hashEnd = HASH_WORD.length + HASH_DIGITS
  if (!has(line, 0, HASH_WORD)) return null
  const isSigned = has(line, hashEnd, SIG_WORD)
  const sigStart = hashEnd + SIG_WORD.length
  const frameEnd = isSigned ? sigStart + SIG_DIGITS : hashEnd
  if (!has(line, frameEnd, ENTRY_WORD)) return isSigned ? 'the signature is not 128 hexadecimal digits' : null
  const sig = isSigned ? line.toString('latin1', sigStart, frameEnd) : ''
  if (isSigned && !HEX.test(sig)) return 'the signature is not 128 hexadecimal digits'
  const entryStart = frameEnd + ENTRY_WORD.length
  const place = readPlace(line, entryStart)
  if (place === null || line[line.length - 1] !== BRACE || line[line.length - 2] !== BRACE) {
    return 'the entry is not of the form {"seq":n,"prev":"…",…}'
  }
  const hash = createHash('sha256').update(ENTRY_DOMAIN).update(line.subarray(entryStart, -1)).digest('hex')
  if (line.toString('latin1', HASH_WORD.length, hashEnd) !== hash) return 'the hash does not match the line'
  return { ...place, hash, signature: isSigned ? Buffer.from(sig, 'hex') : null }
}

function readPlace(line: Buffer, start: number): { readonly seq: number; readonly prev: string } | null {
  const digits = start + SEQ_WORD.length
  const comma = line.subarray(digits, digits + LONGEST_SEQ + 1).indexOf(COMMA)
  if (!has(line, start, SEQ_WORD) || comma === -1) return null
  const text = line.toString('latin1', digits, digits + comma)
  const prevStart = digits + comma + PREV_WORD.length
  const prevEnd = prevStart + HASH_DIGITS
  const prev = line.toString('latin1', prevStart, prevEnd)
  const after = line[prevEnd + 1]
  const isWhole = WHOLE.test(text) && Number.isSafeInteger(Number(text))
  const isFramed = has(line, digits + comma, PREV_WORD) && line[prevEnd] === QUOTE
  if (!isWhole || !isFramed || !HEX.test(prev) || (after !== COMMA && after !== BRACE)) return null
  return { seq: Number(text), prev }
}

function has(line: Buffer, at: number, word: Buffer): boolean {
  return line.length >= at + word.length && word.compare(line, at, at + word.length) === 0
}

/** A line to write, with its hash. */
export interface EntryLine {
  /** With its LF. */
  readonly text: string
  readonly hash: string
}

/** Writes a line of the open format. `members`: those of the entry after `seq` and `prev`. `sign`: Ed25519; absent for an unsigned line. */
export function writeEntry(
  { seq, prev }: { readonly seq: number; readonly prev: string },
  members: Readonly<Record<string, unknown>>,
  sign?: (text: Buffer) => Buffer,
): EntryLine {
  const entry = JSON.stringify({ seq, prev, ...members })
  const hash = createHash('sha256').update(ENTRY_DOMAIN).update(entry).digest('hex')
  const sig = sign === undefined ? '' : `"sig":"${sign(signedTextOf(hash)).toString('hex')}",`
  return { text: `{"hash":"${hash}",${sig}"entry":${entry}}\n`, hash }
}

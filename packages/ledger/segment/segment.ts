import { createHash } from 'node:crypto'
import { Chain } from '../chain.ts'
import { type Head, ZERO_HASH } from '../format.ts'
import { ledgerIdOf, readSeal, type SegmentSeal, type Statement } from './statement.ts'

/** Maximum length of a seal in bytes without LF: names and two hashes, with any signature. */
export const MAX_SEAL_BYTES = 8 * 1024

const LF = 0x0a

/** Head of an empty ledger. */
export const NO_RECORD: Head = { seq: -1, hash: ZERO_HASH }

/** A segment file: the seal, then ledger lines, each with its LF. */
export interface Segment {
  readonly seal: SegmentSeal
  readonly statement: Statement<SegmentSeal>
  /** SHA-256 of the seal as base64url, as in a receipt. */
  readonly sealId: string
  readonly lines: Buffer
}

export function segmentBytes(seal: string, lines: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(`${seal}\n`), lines])
}

/** Returns the id by which a receipt names its seal. */
export function sealIdOf(seal: string): string {
  return createHash('sha256').update(seal).digest('base64url')
}

/**
 * Splits a segment without verifying it. Returns `incomplete` when it has fewer lines than the seal states, as while a file is being copied, and
 * `malformed` when it is not a segment.
 */
export function readSegment(bytes: Buffer): Segment | 'incomplete' | 'malformed' {
  const end = bytes.subarray(0, MAX_SEAL_BYTES + 1).indexOf(LF)
  if (end === -1) return bytes.length <= MAX_SEAL_BYTES ? 'incomplete' : 'malformed'
  const text = bytes.toString('latin1', 0, end)
  const statement = readSeal(text)
  if (statement === null) return 'malformed'
  const lines = bytes.subarray(end + 1)
  const seal = statement.says
  if (lines.length < seal.bytes) return 'incomplete'
  if (lines.length > seal.bytes) return 'malformed'
  return { seal, statement, sealId: sealIdOf(text), lines }
}

/** A valid chain from the seal's `prev` to its `head`, and the part after a given record. */
export interface Followed {
  /** Hash of that record, which may be the seal's `prev`; null when the segment does not reach it. */
  readonly hash: string | null
  /** Lines after it; empty when the segment does not reach it. */
  readonly after: Buffer
}

/**
 * Verifies the chain through the lines of a segment: exactly the records from `from` to `to`, with the hashes of the seal. Returns a string that
 * says what is wrong. The bytes are modified while hashed, and restored.
 */
export function followSegment({ seal, lines }: Segment, seq: number): Followed | string {
  const { from, to, prev, head, ledgerId } = seal
  if (from === 0 && prev !== ZERO_HASH) return 'the seal names a record before the first one'
  const chain = new Chain(from === 0 ? null : { seq: from - 1, hash: prev })
  let found = seq === from - 1 ? { hash: prev, at: 0 } : null
  let start = 0
  while (start < lines.length) {
    const end = lines.indexOf(LF, start)
    if (end === -1) return 'the last line is torn'
    if (chain.next === 0 && ledgerIdOf(lines.subarray(start, end)) !== ledgerId) return 'it begins another ledger'
    const line = chain.follow(lines, start, end)
    if ('kind' in line) return line.what
    start = end + 1
    if (line.seq === seq) found = { hash: line.hash, at: start }
  }
  if (chain.next !== to + 1) return `it ends before record ${chain.next}, and its seal says ${to + 1}`
  if ((chain.head?.hash ?? ZERO_HASH) !== head) return `record ${to} is not the one that the seal names`
  return found === null
    ? { hash: null, after: lines.subarray(lines.length) }
    : { hash: found.hash, after: lines.subarray(found.at) }
}

import { createHash } from 'node:crypto'
import { Chain } from '../chain.ts'
import { type Head, ZERO_HASH } from '../format.ts'
import { ledgerIdOf, readSeal, type SegmentSeal, type Statement } from './statement.ts'

/** Longest seal in bytes, its LF not counted: names and two hashes, whatever signs them. */
export const MAX_SEAL_BYTES = 8 * 1024

const LF = 0x0a

/** The head of a ledger that has no record yet. */
export const NO_RECORD: Head = { seq: -1, hash: ZERO_HASH }

/** A segment file: the seal, then the lines of the ledger as they stand in it, each with its LF. */
export interface Segment {
  readonly seal: SegmentSeal
  readonly statement: Statement<SegmentSeal>
  /** SHA-256 of the seal as base64url: what a receipt names. */
  readonly sealId: string
  readonly lines: Buffer
}

/** The bytes of a segment. */
export function segmentBytes(seal: string, lines: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(`${seal}\n`), lines])
}

/** What a receipt calls the seal that it answers. */
export function sealIdOf(seal: string): string {
  return createHash('sha256').update(seal).digest('base64url')
}

/**
 * Takes a segment's bytes apart; nothing of it is verified. `incomplete`: fewer lines than the seal says, as while a file is being
 * copied; `malformed`: it is no segment.
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

/** A chain that holds from the seal's `prev` to its `head`, and what of it follows a record that was asked for. */
export interface Followed {
  /** The hash of that record, which may be the seal's `prev`; null: the segment does not reach it. */
  readonly hash: string | null
  /** The lines after it; none when the segment does not reach it. */
  readonly after: Buffer
}

/**
 * Follows the chain through the lines of a segment: every record from `from` to `to`, nothing else, and its hashes are those of the
 * seal. A text says what is wrong. The bytes are touched while they are hashed, and left as they were.
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

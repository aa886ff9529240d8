import type { AppendHandle } from '@plat/state'
import { Chain, type Damage, type Followed, followChain } from '../chain.ts'
import { type Head, type RawLine, readRawLine } from '../format.ts'
import type { LedgerSegment } from '../sequence/segment-entry.ts'
import { SegmentListError } from '../sequence/segment-list-error.ts'
import { readSegmentLine, type SegmentLine, treeAfter } from '../sequence/segment-record.ts'
import { ArchivedError, type LedgerSequence } from '../sequence/sequence.ts'
import type { FoundPoint } from './resume-point.ts'
import type { FileStart } from './sealing/sealer.ts'

/** A ledger is damaged inside: it must not be extended. */
export class LedgerDamagedError extends Error {
  readonly damage: Damage

  constructor(path: string, damage: Damage, isSealed = false) {
    const cure = isSealed
      ? 'This is a sealed segment: restore it from a copy or an archive'
      : `Look with: plat audit verify ${path}; then keep the good part with: plat audit repair ${path}`
    super(
      `${path} is damaged at line ${damage.line} (record ${damage.seq}, byte ${damage.offset}): ${damage.what}. ${cure}`,
    )
    this.damage = damage
  }
}

/** Where reading begins. */
export interface Reading {
  /** The chain before the first record to read. */
  readonly chain: Chain
  /** Position of that record in the sequence. */
  readonly position: number
}

/**
 * Returns where reading begins: at record `since`, or when that is later or the ledger does not hold it, at `point`, the resume point of the active
 * file, or at the beginning of that file.
 */
export async function planReading(
  sequence: LedgerSequence,
  since: Head | 'active' | undefined,
  point: FoundPoint | null = null,
): Promise<Reading> {
  if (since === undefined) return { chain: new Chain(null), position: 0 }
  const offset = activeOffset(sequence)
  const active =
    point === null
      ? { chain: new Chain((await lastSealed(sequence))?.place ?? null), position: offset }
      : { chain: new Chain(before(point)), position: offset + point.offset }
  if (since === 'active' || since.seq >= active.chain.next) return active
  const found = await lineIfHere(sequence, since.seq)
  const line = found === null ? null : readRawLine(found.line, 0, found.line.length)
  if (found === null || line === null || typeof line === 'string' || line.hash !== since.hash) return active
  return { chain: new Chain(before(line)), position: found.position }
}

function activeOffset(sequence: LedgerSequence): number {
  return sequence.parts.at(-1)?.offset ?? 0
}

/** Returns the record before this one. */
function before({ seq, prev }: { readonly seq: number; readonly prev: string }): Head | null {
  return seq === 0 ? null : { seq: seq - 1, hash: prev }
}

/** Returns where reading goes on in the active file, and what is before it there. Valid before the file is read. */
export function startIn(sequence: LedgerSequence, { chain, position }: Reading) {
  const offset = Math.max(0, position - activeOffset(sequence))
  const { head } = chain
  return { offset, unread: offset === 0 || head === null ? null : { bytes: offset, head } }
}

/** Returns the last record of the sealed segments, or null when there are none. Throws SegmentListError when the list states another one. */
async function lastSealed(sequence: LedgerSequence): Promise<SegmentLine | null> {
  const segment = await sequence.lastSealed()
  return segment === null ? null : recordOf(segment)
}

function recordOf(segment: LedgerSegment): SegmentLine {
  const record = readSegmentLine(Buffer.from(segment.record))
  if (record === null || record.first !== segment.first || record.place.seq !== segment.last) {
    throw new SegmentListError(
      `the list of sealed segments states a wrong record for that of record ${segment.first}: move the list away, and it is rebuilt`,
    )
  }
  return record
}

async function lineIfHere(sequence: LedgerSequence, seq: number) {
  try {
    return await sequence.lineOf(seq)
  } catch (error) {
    if (error instanceof ArchivedError) return null
    throw error
  }
}

/** Verifies the chain of the sealed segments from where reading begins, except of those that left. Throws LedgerDamagedError. */
export async function followSealed(
  sequence: LedgerSequence,
  { chain, position }: Reading,
  onRecord: (buffer: Buffer, start: number, line: RawLine) => null,
): Promise<void> {
  for (const part of sequence.parts) {
    if (part.leftUpTo !== null && part.leftUpTo >= chain.next) {
      const left = await sequence.segmentOf(part.leftUpTo)
      if (left !== null) chain.skipTo(recordOf(left).place)
    }
    if (part.segment === null || part.offset + part.segment.bytes <= position) continue
    const from = Math.max(0, position - part.offset)
    const { damage } = await followChain({ source: sequence.sourceOf(part), chain, from, onRecord })
    if (damage !== null) throw new LedgerDamagedError(part.path, damage, true)
  }
}

/** Returns what the last sealed segment states, and where the active file begins. */
export async function endOfSealed(sequence: LedgerSequence): Promise<{
  readonly ledgerId: string | null
  readonly start: FileStart
  /** Null: there is no sealed segment. */
  readonly record: SegmentLine | null
}> {
  const segment = await sequence.lastSealed()
  const line = Buffer.from(segment?.record ?? '')
  const record = segment === null ? null : recordOf(segment)
  if (record === null) return { ledgerId: null, start: { first: 0, tree: { size: 0, subtrees: [] } }, record }
  const { ledgerId, place } = record
  return { ledgerId, record, start: { first: place.seq + 1, tree: treeAfter(record, line) } }
}

/** Returns what `sealFile` needs when the active file ends with a `segment` record, else null. */
export function endOfSegment(handle: AppendHandle, { head, headOffset, lines }: Followed) {
  if (head === null || lines === 0) return null
  const bytes = handle.size()
  const line = Buffer.alloc(bytes - headOffset - 1)
  if (handle.read(line, headOffset) !== line.length) throw new Error('the ledger shrank while it was read')
  const record = readSegmentLine(line)
  if (record === null) return null
  return { bytes, head, next: { first: head.seq + 1, tree: treeAfter(record, line) } }
}

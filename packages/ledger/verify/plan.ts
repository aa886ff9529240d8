import { lineAt } from '../find.ts'
import { type LedgerSegment, segmentsPath } from '../sequence/segment-entry.ts'
import { SegmentListError } from '../sequence/segment-list-error.ts'
import { readSegmentLine, treeAfter } from '../sequence/segment-record.ts'
import { LedgerSequence } from '../sequence/sequence.ts'
import { ledgerIdOf, type PartStart } from './part.ts'
import { NOTHING } from './runner.ts'

/** One file of a ledger under verification, or adjacent segments that left. */
export interface PlannedPart {
  readonly path: string
  /** `seq` of its first line. */
  readonly first: number
  readonly bytes: number
  /** Last record of segments that left; null for a file. */
  readonly leftUpTo: number | null
  /** State before it, as the `segment` record before it states it. */
  readonly start: PartStart
}

/** Returns the files of a ledger in order. Throws SegmentListError, or the system's error when there are none. */
export async function planParts(ledgerPath: string, needsTree: boolean): Promise<readonly PlannedPart[]> {
  await using sequence = await LedgerSequence.open(ledgerPath)
  const size = await sequence.size()
  const ledgerId = await firstLedgerId(sequence)
  const planned: PlannedPart[] = []
  for (const { path, segment, leftUpTo, first, offset } of sequence.parts) {
    const before = await sequence.segmentOf(first - 1)
    const start = before === null ? { ...NOTHING, tree: EMPTY_TREE } : startAfter(before, ledgerPath)
    const bytes = leftUpTo !== null ? 0 : (segment?.bytes ?? size - offset)
    planned.push({ path, first, bytes, leftUpTo, start: { ...start, ledgerId, tree: needsTree ? start.tree : null } })
  }
  return planned
}

const EMPTY_TREE = { size: 0, subtrees: [] }

function startAfter({ first, last, record }: LedgerSegment, ledgerPath: string): PartStart {
  const line = Buffer.from(record)
  const read = readSegmentLine(line)
  if (read === null || read.place.seq !== last) {
    throw new SegmentListError(
      `${segmentsPath(ledgerPath)} has no valid segment record of records ${first} to ${last}: restore it from a copy; ` +
        'or move it away if all segments are there, and it is rebuilt from them',
    )
  }
  return { head: read.place, previous: read.closed, tree: treeAfter(read, line), ledgerId: read.ledgerId }
}

/** Returns the id that the first record states, or when it left, the first `segment` record. */
async function firstLedgerId(sequence: LedgerSequence): Promise<string | null> {
  if (sequence.parts[0]?.leftUpTo !== null) {
    const segment = await sequence.segmentOf(0)
    return readSegmentLine(Buffer.from(segment?.record ?? ''))?.ledgerId ?? null
  }
  const line = await lineAt(sequence, 0)
  return line === null ? null : ledgerIdOf(line)
}

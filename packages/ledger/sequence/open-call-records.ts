import { isObject } from '@plat/core'
import { readRawLine } from '../format.ts'
import type { Rec } from '../types.ts'
import { SegmentListError } from './segment-list-error.ts'
import { MAX_OPEN_CALLS_NAMED, type SegmentRecord } from './segment-record.ts'
import type { LedgerSequence } from './sequence.ts'

/** Returns the `open` records that name these intents; none when the `segment` record can name them. */
export function openCallRecords(seqs: readonly number[]): readonly Rec[] {
  if (seqs.length <= MAX_OPEN_CALLS_NAMED) return []
  const records: Rec[] = []
  for (let from = 0; from < seqs.length; from += MAX_OPEN_CALLS_NAMED) {
    records.push({ kind: 'open', open: seqs.slice(from, from + MAX_OPEN_CALLS_NAMED) })
  }
  return records
}

/**
 * Returns the intents without an outcome at the end of a segment, from its `segment` record or from the `open` records before it, of which the chain is
 * verified. Throws SegmentListError when one of them is damaged, and ArchivedError when the segment left.
 */
export async function openCallsOf(
  { open, closed }: Pick<SegmentRecord, 'open' | 'closed'>,
  sequence: LedgerSequence,
): Promise<readonly number[]> {
  if (!('from' in open)) return open
  const seqs: number[] = []
  let expected = closed.hash
  for (let seq = closed.seq; seq >= open.from; seq--) {
    const line = (await sequence.lineOf(seq))?.line ?? Buffer.alloc(0)
    const raw = readRawLine(line, 0, line.length)
    const named = typeof raw === 'string' || raw.hash !== expected ? null : namedIn(line)
    if (typeof raw === 'string' || named === null) throw damaged(seq)
    expected = raw.prev
    // The records are read from the last one on, so that each is compared with what the next one states.
    seqs.push(...named.reverse())
  }
  return seqs.reverse()
}

function namedIn(line: Buffer): number[] | null {
  const value: unknown = JSON.parse(line.toString())
  const rec = isObject(value) && isObject(value.rec) ? value.rec : {}
  if (rec.kind !== 'open' || !Array.isArray(rec.open) || rec.open.length > MAX_OPEN_CALLS_NAMED) return null
  const seqs: number[] = []
  for (const seq of rec.open) {
    if (!Number.isSafeInteger(seq)) return null
    seqs.push(Number(seq))
  }
  return seqs
}

function damaged(seq: number): SegmentListError {
  return new SegmentListError(
    `record ${seq}, which names calls that were open when its segment was sealed, is damaged: restore this segment from a copy with \`plat audit repair <ledger> -from <copy>\``,
  )
}

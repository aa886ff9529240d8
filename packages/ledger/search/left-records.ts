import type { LedgerMoment } from '../moment.ts'
import { type LedgerSegment, startsAfter } from '../sequence/segment-entry.ts'
import { LedgerSequence } from '../sequence/sequence.ts'
import type { ArchivedRecords } from '../verify/finding.ts'
import { commonPlace } from '../verify/report.ts'

/**
 * Returns the records of a range that are not here, since their segments left: one entry for each stretch, with the place or folder of its first and last
 * file. In O(log n) for each. `to`: null for the end.
 */
export async function leftRecords(
  path: string,
  { from, to }: { readonly from: LedgerMoment; readonly to: LedgerMoment | null },
): Promise<readonly ArchivedRecords[]> {
  await using sequence = await LedgerSequence.open(path)
  const left: ArchivedRecords[] = []
  for (const { first, leftUpTo } of sequence.parts) {
    if (leftUpTo === null) continue
    const [begin, end] = [await sequence.segmentOf(first), await sequence.segmentOf(leftUpTo)]
    if (isAfter(from, leftUpTo, end) || (to !== null && startsAfter({ first, from: begin?.from ?? '' }, to))) continue
    const [one, other] = [begin?.archive ?? null, end?.archive ?? null]
    left.push({ first, last: leftUpTo, archive: commonPlace(one, other) ?? one ?? other })
  }
  return left
}

/** Returns whether a range begins after records that left. */
function isAfter(from: LedgerMoment, last: number, segment: LedgerSegment | null): boolean {
  return typeof from === 'number' ? from > last : segment !== null && segment.to < from.at
}

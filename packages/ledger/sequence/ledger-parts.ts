import { dirname, join } from 'node:path'
import { type LedgerSegment, segmentsPath } from './segment-entry.ts'
import type { LoadedSegments } from './segment-list.ts'

/** One file of a ledger, a sealed segment or the active file at the end, or the adjacent segments that left between two files. */
export interface LedgerPart {
  readonly path: string
  /** Null: the active file, or segments that left. */
  readonly segment: LedgerSegment | null
  /** Last record of segments that left; null for a file. */
  readonly leftUpTo: number | null
  /** `seq` of its first line. */
  readonly first: number
  /** Position of its first byte in the sequence. */
  readonly offset: number
}

/** Returns the files of a ledger and what left between them. */
export function partsOf(ledgerPath: string, { segments, left }: LoadedSegments): readonly LedgerPart[] {
  let [first, offset] = [0, 0]
  const parts: LedgerPart[] = []
  const addLeft = (next: number, end: number): void => {
    if (next > first) parts.push({ path: segmentsPath(ledgerPath), segment: null, leftUpTo: next - 1, first, offset })
    first = next
    offset = end
  }
  for (const segment of segments) {
    if (segment.file === null) continue
    addLeft(segment.first, segment.offset)
    parts.push({ path: join(dirname(ledgerPath), segment.file), segment, leftUpTo: null, first, offset })
    first = segment.last + 1
    offset += segment.bytes
  }
  const listed = segments.at(-1)
  const [last, end] = [listed?.last ?? -1, listed === undefined ? 0 : listed.offset + listed.bytes]
  const state = left.state !== null && left.state.last > last ? left.state : { last, end }
  addLeft(state.last + 1, state.end)
  return [...parts, { path: ledgerPath, segment: null, leftUpTo: null, first, offset }]
}

/** Binary search for the last part that begins up to a position. */
export function partAt(parts: readonly LedgerPart[], position: number): LedgerPart | undefined {
  return parts[lastIndex(parts, ({ offset }) => offset <= position)]
}

/** Returns the listed segment of record `seq`, or null. */
export function lastUpTo(segments: readonly LedgerSegment[], seq: number): LedgerSegment | null {
  const segment = segments[lastIndex(segments, ({ first }) => first <= seq)]
  return segment !== undefined && segment.first <= seq && seq <= segment.last ? segment : null
}

/** Returns the index of the last item of which `isBefore` is true, given that it is true for all earlier items; 0 when there is none. */
function lastIndex<T>(items: readonly T[], isBefore: (item: T) => boolean): number {
  let [low, high] = [0, items.length - 1]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    const item = items[middle]
    if (item !== undefined && isBefore(item)) low = middle
    else high = middle - 1
  }
  return low
}

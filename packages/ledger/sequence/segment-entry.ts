import { basename } from 'node:path'
import { isObject } from '@plat/core'
import type { LedgerMoment } from '../moment.ts'
import { COMPRESSED } from './compressed-file.ts'

/** A sealed segment of a ledger: a file that is no longer written. */
export interface LedgerSegment {
  /** `seq` of its first line. */
  readonly first: number
  /** `seq` of its last line, which is its `segment` record. */
  readonly last: number
  /** Size of its lines, which is that of the file unless it is compressed (`….jsonl.zst`). */
  readonly bytes: number
  /** Position of its first byte in the ledger. */
  readonly offset: number
  /** Times of its first and last record. */
  readonly from: string
  readonly to: string
  /** Its last line, without LF: head hash, root, tree and open calls at its end. */
  readonly record: string
  /** Line of a signed checkpoint that covers it, without LF; null as long as none is known. */
  readonly checkpoint: string | null
  /** Name of the file beside the ledger; null when it left. */
  readonly file: string | null
  /** Where a copy is archived; null when there is none. */
  readonly archive: string | null
  /** Time at which it left (RFC 3339); null when it never did. With a file as well, it was copied back. */
  readonly left: string | null
}

/** An entry of a list; lists of earlier versions do not state positions. */
export type ListedSegment = Omit<LedgerSegment, 'offset'> & { readonly offset: number | null }

/** Returns whether all records of a segment are after a moment. */
export function startsAfter({ first, from }: Pick<LedgerSegment, 'first' | 'from'>, moment: LedgerMoment): boolean {
  return typeof moment === 'number' ? first > moment : from > moment.at
}

/** File with the list of sealed segments, rebuilt from the segments when it is missing. */
export function segmentsPath(ledgerPath: string): string {
  return `${ledgerPath}.segments.json`
}

const SEQ_DIGITS = 20

/** Returns the path of the sealed segment that begins with record `first`, as long as it is not compressed. */
export function segmentPath(ledgerPath: string, first: number): string {
  return `${ledgerPath}.${String(first).padStart(SEQ_DIGITS, '0')}.jsonl`
}

/** Returns the first record of a sealed segment by the name of its file. */
export function firstOfSegment(path: string): number {
  return Number(/\.(\d{20})\.jsonl(?:\.zst)?$/.exec(path)?.[1] ?? 0)
}

/** Reads an entry of a list; null when it is malformed. The `segment` record is verified where it is used. */
export function readEntry(value: unknown): ListedSegment | null {
  if (!isObject(value)) return null
  const { first, last, bytes, offset = null, from, to, record, checkpoint, file, archive, left = null } = value
  if (typeof from !== 'string' || typeof to !== 'string') return null
  if (typeof record !== 'string' || !isTextOrNull(checkpoint)) return null
  if (!isTextOrNull(archive) || !isTextOrNull(left)) return null
  if (!isCount(first) || !isCount(last) || last <= first || !isCount(bytes)) return null
  if (offset !== null && !isCount(offset)) return null
  if (!isTextOrNull(file) || (file !== null && !isSegmentName(file, first))) return null
  return { first, last, bytes, offset, from, to, record, checkpoint, file, archive, left }
}

/** A list can name sealed segments beside it only: their files are read, and removed when they left. A ledger that was renamed has their former names. */
function isSegmentName(file: string, first: number): boolean {
  const ending = segmentPath('', first)
  return file === basename(file) && (file.endsWith(ending) || file.endsWith(`${ending}${COMPRESSED}`))
}

/** Returns whether a value is a number of records or bytes. */
export function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

function isTextOrNull(value: unknown): value is string | null {
  return value === null || typeof value === 'string'
}

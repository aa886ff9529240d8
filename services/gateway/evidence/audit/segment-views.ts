import { type LedgerSegment, LedgerSequence } from '@plat/ledger'
import { type Static, Type } from 'typebox'
import type { Page } from '../../admin/index.ts'

const orNull = () => Type.Union([Type.String(), Type.Null()])

export const segmentSchema = Type.Object({
  id: Type.String({ description: 'Number of its first record, with leading zeros.' }),
  first: Type.Integer({ minimum: 0 }),
  last: Type.Integer({ minimum: 0 }),
  bytes: Type.Integer({ minimum: 0, description: 'Size of its lines.' }),
  from: Type.String(),
  to: Type.String(),
  isSigned: Type.Boolean({ description: 'A signed checkpoint covers it.' }),
  isHere: Type.Boolean({ description: 'Its file is beside the ledger.' }),
  isCompressed: Type.Boolean(),
  isArchived: Type.Boolean({ description: 'A copy is in the archive.' }),
  left: Type.Union([Type.String(), Type.Null()], { description: 'When its file left; null: never.' }),
  state: Type.Enum(['verified', 'damaged', 'unverified'], {
    type: 'string',
    description: 'As this gateway found it in the background since it started.',
  }),
  problem: orNull(),
})

export type SegmentView = Static<typeof segmentSchema>

/** Digits of the largest number of a record. */
const ID_DIGITS = 16

/** A part of the list. */
export interface SegmentsWanted {
  /** Record after the segments; absent: all. */
  readonly before?: number
  readonly limit: number
  /** As `Verification` has it. */
  readonly problemOf: (first: number) => string | null | undefined
}

/** Returns a page of the sealed segments of the ledger, the newest first, also of those that left; the cursor is the last id. */
export async function segmentViews(
  path: string,
  { before, limit, problemOf }: SegmentsWanted,
): Promise<Page<SegmentView>> {
  await using sequence = await LedgerSequence.open(path)
  const found = await sequence.segmentsBefore(before ?? Number.MAX_SAFE_INTEGER, limit + 1)
  const items = found.slice(0, limit).map((segment) => viewOf(segment, problemOf(segment.first)))
  return { items, nextCursor: found.length > limit ? (items.at(-1)?.id ?? null) : null }
}

function viewOf(segment: LedgerSegment, problem: string | null | undefined): SegmentView {
  const { first, last, bytes, from, to, checkpoint, file, archive, left } = segment
  return {
    id: String(first).padStart(ID_DIGITS, '0'),
    ...{ first, last, bytes, from, to, left },
    isSigned: checkpoint !== null,
    isHere: file !== null,
    isCompressed: file?.endsWith('.zst') ?? false,
    isArchived: archive !== null,
    state: problem === undefined ? 'unverified' : problem === null ? 'verified' : 'damaged',
    problem: problem ?? null,
  }
}

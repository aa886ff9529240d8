import { LedgerSequence } from '@plat/ledger'
import { type Static, Type } from 'typebox'

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

/** Sealed segments of the ledger, the newest first. `problemOf`: as `Verification` has it. */
export async function segmentViews(
  path: string,
  problemOf: (first: number) => string | null | undefined,
): Promise<readonly SegmentView[]> {
  await using sequence = await LedgerSequence.open(path)
  return sequence.segments.toReversed().map(({ first, last, bytes, from, to, checkpoint, file, archive, left }) => {
    const problem = problemOf(first)
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
  })
}

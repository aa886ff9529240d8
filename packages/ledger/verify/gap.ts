import { readCheckpointText } from '../proof/checkpoint.ts'
import { fullSubtrees, MerkleTree, type TreeState } from '../proof/tree.ts'
import { judgeCheckpoint, type Trust } from '../proof/trust.ts'
import type { LedgerSegment } from '../sequence/segment-list.ts'
import { readSegmentLine, treeAfter } from '../sequence/segment-record.ts'
import type { Claim } from './claim-table.ts'
import { claimantOf, type PartResult, type PartStart } from './part.ts'

/** Verification of segments that left: what the segment list states about them. */
export interface GapOptions {
  readonly segment: LedgerSegment
  /** Tree and ledger before the first record of the segment, as far as they are known. */
  readonly before: PartStart
  readonly trust: Trust | null
  /** Claims about its records. */
  readonly claims: readonly Claim[]
}

/**
 * Verifies a segment that left: its `segment` record, that its tree continues the one before, its checkpoint, and each claim about its end. The next
 * present file contains the hash of the record, which in turn contains the root over all records before.
 */
export function verifyGap({ segment, before, trust, claims }: GapOptions): PartResult {
  const line = Buffer.from(segment.record)
  const read = readSegmentLine(line)
  const refused = (what: string, seq = segment.first, kind: 'broken' | 'forked' = 'broken'): PartResult => ({
    ...EMPTY,
    problem: { kind, line: 1, seq, offset: 0, what },
    end: { ...before, ledgerId: before.ledgerId },
  })
  if (read === null || read.first !== segment.first || read.place.seq !== segment.last) {
    return refused('the list has no valid segment record of a segment that left')
  }
  if (before.ledgerId !== null && read.ledgerId !== before.ledgerId)
    return refused('its segment record is of another ledger')
  const tree = treeAfter(read, line)
  if (before.tree !== null && !continues(before.tree, read.tree)) {
    return refused('the root in its segment record does not continue that of the segment before it')
  }
  const checkpoint = checkpointOf(segment, trust)
  if (typeof checkpoint === 'string') return refused(checkpoint)
  const root = new MerkleTree(read.tree).root()
  let provenUpTo = -1
  for (const claim of claims) {
    const { size, head, root: stated, ledgerId, signed } = claim
    const actual =
      size === read.tree.size
        ? { head: read.closed.hash, root }
        : size === segment.last + 1
          ? { head: read.place.hash, root: new MerkleTree(tree).root() }
          : null
    if (actual === null) continue
    const isSame = (head ?? actual.head) === actual.head && (stated ?? actual.root) === actual.root
    if (!isSame || ledgerId !== read.ledgerId) {
      return refused(`${claimantOf(claim)} covers another history`, size - 1, 'forked')
    }
    if (signed) provenUpTo = Math.max(provenUpTo, size - 1)
  }
  const end = { head: read.place, previous: read.closed, tree, ledgerId: read.ledgerId }
  return { ...EMPTY, end, provenUpTo }
}

const EMPTY = { problem: null, torn: null, bytes: 0, signed: 0, provenUpTo: -1, lastCheckpoint: -1 } as const

/** Returns the claim of the checkpoint that the list names for a segment, null without one, or what is wrong with it. */
export function checkpointOf({ checkpoint, first, last }: LedgerSegment, trust: Trust | null): Claim | string | null {
  if (checkpoint === null) return null
  const read = readCheckpointText(checkpoint)
  if (typeof read === 'string') return `the checkpoint that the list names for it is invalid: ${read}`
  const signed = trust !== null && judgeCheckpoint(read, trust)
  if (typeof signed === 'string') return signed
  const { ledgerId, size, head, root } = read
  if (size <= last) return `the checkpoint that the list names for it covers only ${size} records`
  const source = `the checkpoint of the archived records ${first} to ${last}`
  return { ledgerId, size, head, root, seq: null, signed, kind: 'checkpoint', source }
}

/** Returns whether each full subtree that both trees have is the same. Others cannot be compared without the records. */
function continues(before: TreeState, after: TreeState): boolean {
  if (after.size < before.size) return false
  const places = fullSubtrees(before.size)
  const known = new Map(places.map(({ level, index }, at) => [`${level}/${index}`, before.subtrees[at]]))
  return fullSubtrees(after.size).every(({ level, index }, at) => {
    const hash = known.get(`${level}/${index}`)
    return hash === undefined || after.subtrees[at]?.equals(hash) === true
  })
}

import { type Checkpoint, readCheckpointText } from '../proof/checkpoint.ts'
import { fullSubtrees, MerkleTree, type TreeState } from '../proof/tree.ts'
import { judgeCheckpoint, type Trust } from '../proof/trust.ts'
import type { LedgerSegment } from '../sequence/segment-entry.ts'
import { readSegmentLine, treeAfter } from '../sequence/segment-record.ts'
import type { Claim } from './claim-table.ts'
import type { ArchivedRecords } from './finding.ts'
import { claimantOf, type PartResult, type PartStart } from './part.ts'
import { addArchived } from './report.ts'

/** Verification of adjacent segments that left: what the list states about them. */
export interface GapOptions {
  /** In order. */
  readonly segments: AsyncIterable<LedgerSegment>
  readonly first: number
  readonly last: number
  /** Tree and ledger before the first record, as far as they are known. */
  readonly before: PartStart
  readonly trust: Trust | null
  /** Claims about their records. */
  readonly claims: readonly Claim[]
}

export interface VerifiedGap {
  readonly result: PartResult
  readonly archived: readonly ArchivedRecords[]
}

/**
 * Verifies segments that left, one after the other. Claims are held until the records that they are about: those of other parts, and those of the
 * checkpoints of segments before.
 */
export async function verifyGap({ segments, first, last, before, trust, claims }: GapOptions): Promise<VerifiedGap> {
  const archived: ArchivedRecords[] = []
  const checkpoints = new CheckpointReader(trust)
  const waiting = new WaitingClaims(claims)
  let result: PartResult = { ...EMPTY, end: before }
  const add = (one: PartResult): boolean => {
    result = { ...one, provenUpTo: Math.max(result.provenUpTo, one.provenUpTo) }
    return one.problem === null
  }
  let next = first
  let previous: string | null = null
  for await (const segment of segments) {
    if (segment.first !== next) break
    const checkpoint = checkpoints.of(segment)
    const isNew = segment.checkpoint !== previous && checkpoint !== null && typeof checkpoint !== 'string'
    if (isNew && checkpoint.size <= last + 1) waiting.add(checkpoint)
    previous = segment.checkpoint
    const about = waiting.upTo(segment.last + 1)
    if (!add(verifyLeft({ segment, before: result.end, checkpoint, claims: about }))) return { result, archived }
    addArchived(archived, segment)
    next = segment.last + 1
  }
  if (next <= last) {
    const what = `records ${next} to ${last} are missing: they are neither here nor listed as segments that left`
    add({ ...EMPTY, problem: { kind: 'broken', line: 1, seq: next, offset: 0, what }, end: result.end })
  }
  return { result, archived }
}

/** Claims that are held until their records, by the number of records that they cover. */
class WaitingClaims {
  #claims: Claim[]

  constructor(claims: readonly Claim[]) {
    this.#claims = claims.toSorted((one, other) => one.size - other.size)
  }

  add(claim: Claim): void {
    const at = this.#claims.findLastIndex(({ size }) => size <= claim.size)
    this.#claims.splice(at + 1, 0, claim)
  }

  /** Removes and returns those that cover at most `size` records. */
  upTo(size: number): readonly Claim[] {
    const at = this.#claims.findIndex((claim) => claim.size > size)
    return this.#claims.splice(0, at === -1 ? this.#claims.length : at)
  }
}

/** Reads the checkpoints of segments that left. Adjacent ones often have the same. */
export class CheckpointReader {
  readonly #trust: Trust | null
  #last: { readonly text: string; readonly read: Checkpoint | string; readonly signed: boolean | string } | null = null

  constructor(trust: Trust | null) {
    this.#trust = trust
  }

  /** Returns the claim of the checkpoint that the list names for a segment, null without one, or what is wrong with it. */
  of({ checkpoint, first, last }: LedgerSegment): Claim | string | null {
    if (checkpoint === null) return null
    if (this.#last?.text !== checkpoint) {
      const read = readCheckpointText(checkpoint)
      const signed = typeof read !== 'string' && this.#trust !== null && judgeCheckpoint(read, this.#trust)
      this.#last = { text: checkpoint, read, signed }
    }
    const { read, signed } = this.#last
    if (typeof read === 'string') return `the checkpoint that the list names for it is invalid: ${read}`
    if (typeof signed === 'string') return signed
    const { ledgerId, size, head, root } = read
    if (size <= last) return `the checkpoint that the list names for it covers only ${size} records`
    const source = `the checkpoint of the archived records ${first} to ${last}`
    return { ledgerId, size, head, root, seq: null, signed, kind: 'checkpoint', source }
  }
}

/** A segment that left. */
interface LeftOptions {
  readonly segment: LedgerSegment
  readonly before: PartStart
  readonly checkpoint: Claim | string | null
  readonly claims: readonly Claim[]
}

/**
 * Verifies a segment that left: its `segment` record, that its tree continues the one before, its checkpoint, and each claim about its end. The next
 * present file contains the hash of the record, which in turn contains the root over all records before.
 */
function verifyLeft({ segment, before, checkpoint, claims }: LeftOptions): PartResult {
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

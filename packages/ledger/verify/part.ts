import { isObject } from '@plat/core'
import { Chain, type ChainProblem, type Damage, followChain } from '../chain.ts'
import type { Head, RawLine } from '../format.ts'
import { type ReadAt, scanLines } from '../lines.ts'
import { MerkleTree, type TreeState } from '../proof/tree.ts'
import { type Claim, ClaimTable } from './claim-table.ts'
import { readStating, type Stating, type VerifyKeys } from './claims.ts'
import type { Finding } from './finding.ts'
import { MarkFinder } from './marks.ts'
import { parsed, strictProblem } from './strict.ts'

/** State of a ledger before its next record. */
export interface PartStart {
  /** Last record so far and the one before it; null at the beginning of a ledger, or when it is not known. */
  readonly head: Head | null
  readonly previous: Head | null
  /** Null: roots are not checked. */
  readonly tree: TreeState | null
  readonly ledgerId: string | null
}

export interface PartOptions {
  /** The lines of one file of a ledger. */
  readonly source: ReadAt
  /** `seq` of its first line. */
  readonly first: number
  readonly start: PartStart
  readonly keys: VerifyKeys
  readonly strict: boolean
  /** Limits of claims that are held at once, and of those about earlier parts. */
  readonly maxClaims?: number
  readonly maxEarlier?: number
  readonly onProgress?: (bytes: number) => void
}

/** Result of the search for checkpoints, anchors and `segment` records in a part. */
export interface PartClaims {
  readonly checkpoints: number
  readonly anchors: Finding['anchors']
  readonly earlier: readonly Claim[]
}

export interface PartResult {
  /** The first problem of the part; null without one. */
  readonly problem: Damage | null
  /** Incomplete bytes after its last line; null without any. */
  readonly torn: { readonly line: number; readonly offset: number; readonly bytes: number } | null
  /** Last valid record and the one before it, the tree and the ledger there. */
  readonly end: PartStart
  readonly bytes: number
  /** Number of checkpoints with a verified signature that cover records of this part. */
  readonly signed: number
  /** Last record of this part that a signature covers, and the last checkpoint that does; -1 without one. */
  readonly provenUpTo: number
  readonly lastCheckpoint: number
}

/** Claims held at once, of 90 bytes each: only a file of more than 100 GB may have more. Those beyond it need another pass over the part. */
const MAX_CLAIMS = 250_000
/** Claims of one part about earlier ones: a checkpoint or two, unless its records were written to exhaust the verifier. */
const MAX_EARLIER = 10_000

/** Thrown when a part makes more claims about earlier parts than are held. */
export class TooManyClaimsError extends Error {}

/** Verifies one file of a ledger, independently of the others: `collect`, then `verify`. Content of the ledger is never a reason to throw otherwise. */
export class PartVerifier {
  readonly #options: PartOptions
  readonly #maxClaims: number
  /** Claims about records of this part that are compared next. */
  #claims = new ClaimTable()
  /** Offset of the first line with a claim that did not fit in; null when all did. */
  #rest: number | null = null
  /** First line that states something unacceptable. */
  #fault: { readonly seq: number; readonly what: string } | null = null
  #ledgerId: string | null
  #signed = 0
  #provenUpTo = -1
  #lastCheckpoint = -1

  constructor(options: PartOptions) {
    this.#options = options
    this.#maxClaims = options.maxClaims ?? MAX_CLAIMS
    this.#ledgerId = options.start.ledgerId
  }

  /** Finds claims, regardless of other damage. Throws TooManyClaimsError. */
  async collect(): Promise<PartClaims> {
    const { first, keys, maxEarlier = MAX_EARLIER } = this.#options
    let checkpoints = 0
    const anchors = { found: 0, signed: 0 }
    let last: Finding['anchors']['last'] = null
    const earlier: Claim[] = []
    await this.#scan(0, ({ seq, kind, claim, anchor }, offset) => {
      if (kind === 'checkpoint') checkpoints++
      if (kind === 'anchor') anchors.found++
      if (anchor !== null && keys.logKeys !== null) anchors.signed++
      last = anchor ?? last
      if (typeof claim === 'string') this.#refuse(seq, claim)
      else if (claim.size > first) this.#add(claim, offset)
      else earlier.push(claim)
      if (earlier.length > maxEarlier)
        throw new TooManyClaimsError(`more than ${maxEarlier} checkpoints of one file cover records of earlier files`)
      return true
    })
    return { checkpoints, anchors: { ...anchors, last }, earlier }
  }

  /** Verifies every line, the claims of this part, and those that others make about it. Caller must `collect` first. */
  async verify(claims: readonly Claim[]): Promise<PartResult> {
    for (const claim of claims) this.#claims.add(claim)
    let result = await this.#follow()
    while (this.#rest !== null) {
      await this.#nextBatch(this.#rest)
      const { problem, ...found } = await this.#follow()
      if (problem !== null && (result.problem === null || problem.seq < result.problem.seq))
        result = { problem, ...found }
    }
    const [signed, provenUpTo, lastCheckpoint] = [this.#signed, this.#provenUpTo, this.#lastCheckpoint]
    return { ...result, signed, provenUpTo, lastCheckpoint }
  }

  async #nextBatch(from: number): Promise<void> {
    this.#claims = new ClaimTable()
    this.#rest = null
    await this.#scan(from, ({ claim }, offset) => {
      if (typeof claim !== 'string' && claim.size > this.#options.first) this.#add(claim, offset)
      return this.#rest === null
    })
  }

  #add(claim: Claim, offset: number): void {
    if (this.#claims.rows < this.#maxClaims) this.#claims.add(claim)
    else this.#rest ??= offset
  }

  #refuse(seq: number, what: string): void {
    if (this.#fault === null || seq < this.#fault.seq) this.#fault = { seq, what }
  }

  async #scan(from: number, see: (stating: Stating, offset: number) => boolean): Promise<void> {
    const marks = new MarkFinder()
    await scanLines(this.#options.source, {
      from,
      onLine: (buffer, start, end, offset) => {
        if (!marks.has(buffer, start, end, offset)) return true
        const stating = readStating(buffer.subarray(start, end), this.#options.keys)
        return stating === null || see(stating, offset)
      },
    })
  }

  async #follow(): Promise<PartResult> {
    const { source, start, strict, onProgress } = this.#options
    const chain = new Chain(start.head, start.previous)
    const tree = start.tree === null ? null : new MerkleTree(start.tree)
    let bytes = 0
    const onRecord = (buffer: Buffer, from: number, line: RawLine): ChainProblem | null => {
      if (strict || tree !== null || line.seq === 0) {
        const text = buffer.subarray(from, from + line.length)
        if (line.seq === 0) this.#ledgerId = ledgerIdOf(text)
        const what = strict ? strictProblem(text, line.recEnd) : null
        if (what !== null) return { kind: 'broken', what }
        tree?.addLine(text)
      }
      bytes += line.length + 1
      if (this.#fault?.seq === line.seq) return { kind: 'broken', what: this.#fault.what }
      return this.#compare(line, tree)
    }
    const found = await followChain({ source, chain, onRecord, ...(onProgress !== undefined && { onProgress }) })
    const { damage: problem, tail, tailComplete, lines, offset } = found
    const isTorn = problem === null && tail.length > 0 && !tailComplete
    return {
      problem,
      torn: isTorn ? { line: lines + 1, offset, bytes: tail.length } : null,
      end: {
        head: placeOf(chain.head),
        previous: placeOf(chain.previous),
        tree: tree?.state() ?? null,
        ledgerId: this.#ledgerId,
      },
      bytes,
      ...{ signed: 0, provenUpTo: -1, lastCheckpoint: -1 },
    }
  }

  /** Compares the claims that end with this record with the actual records. */
  #compare(line: RawLine, tree: MerkleTree | null): ChainProblem | null {
    for (const { ledgerId, head, root, seq, signed, kind, source } of this.#claims.bySize(line.seq + 1)) {
      const claimant = claimantOf({ seq, kind, source })
      if (ledgerId !== this.#ledgerId) return { kind: 'forked', what: `${claimant} is of another ledger, ${ledgerId}` }
      const isSame = (head === null || head === line.hash) && (tree === null || root === null || root === tree.root())
      if (!isSame)
        return { kind: 'forked', what: `${claimant} covers another history: this record or one before it was replaced` }
      if (!signed) continue
      if (seq !== null) this.#signed++
      this.#provenUpTo = Math.max(this.#provenUpTo, line.seq)
      this.#lastCheckpoint = Math.max(this.#lastCheckpoint, seq ?? -1)
    }
    return null
  }
}

/** Name of a checkpoint given by the user. */
export const KEPT = 'the kept checkpoint'

const CLAIMANTS = {
  checkpoint: 'the checkpoint in record',
  anchor: 'the anchor in record',
  segment: 'the segment record',
} as const

/** Returns the name of a claim's source. */
export function claimantOf({ seq, kind, source }: Pick<Claim, 'seq' | 'kind' | 'source'>): string {
  return seq === null ? (source ?? KEPT) : `${CLAIMANTS[kind]} ${seq}`
}

/** A head of a chain is a whole line. */
function placeOf(head: Head | null): Head | null {
  return head === null ? null : { seq: head.seq, hash: head.hash }
}

/** Returns the ledger id that the first record of a ledger states. */
export function ledgerIdOf(line: Buffer): string | null {
  const value = parsed(line)
  const rec = isObject(value) ? value.rec : null
  return isObject(rec) && typeof rec.ledgerId === 'string' ? rec.ledgerId : null
}

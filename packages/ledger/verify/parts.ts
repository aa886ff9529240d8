import { availableParallelism } from 'node:os'
import { SegmentListError } from '../sequence/segment-list-error.ts'
import { LedgerSequence } from '../sequence/sequence.ts'
import { type Claim, ClaimTable } from './claim-table.ts'
import type { ArchivedRecords } from './finding.ts'
import { type VerifiedGap, verifyGap } from './gap.ts'
import type { PartClaims, PartResult, PartStart } from './part.ts'
import type { PlannedPart } from './plan.ts'
import { keysOf, LocalRunner, type PartRunner, type VerifyJob } from './runner.ts'
import { ThreadRunner } from './threads.ts'

/** Ledgers below this size are verified before a thread would have started. */
const THREADS_FROM_BYTES = 64 * 1024 * 1024
/** Limit of threads: each holds up to 30 MiB. */
const MAX_THREADS = 64

export interface PartsOptions {
  readonly job: VerifyJob
  readonly parts: readonly PlannedPart[]
  /** Number of threads; 0: none beside that of the caller. Default: one for each core and file. */
  readonly threads?: number
  /** Called with the bytes verified so far. */
  readonly onProgress: (bytes: number) => void
}

/** A part with its results. */
export interface VerifiedPart {
  readonly part: PlannedPart
  readonly claims: PartClaims
  readonly result: PartResult
  /** Where the records of segments that left are. */
  readonly archived: readonly ArchivedRecords[]
}

/**
 * Verifies all parts of a ledger. They are started from the last to the first: a checkpoint covers records before it, so once all later parts were
 * searched, every claim about a part is known, and claims are held only until the part that they are about.
 */
export class PartsVerifier {
  readonly #options: PartsOptions
  /** Claims of other parts and from elsewhere, by index of the part that they are about. */
  readonly #claims = new Map<number, ClaimTable>()
  readonly #verified: VerifiedPart[]
  readonly #running = new Map<PartRunner, number>()
  #doneBytes = 0
  #next: number
  /** Resolves when all parts from the started ones on were searched. */
  #searched: Promise<void> = Promise.resolve()

  constructor(options: PartsOptions) {
    this.#options = options
    this.#next = options.parts.length - 1
    this.#verified = options.parts.map(unread)
  }

  /** Adds a claim for the part that it is about. */
  add(claim: Claim): void {
    const { parts } = this.#options
    let [low, high] = [0, parts.length - 1]
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      if ((parts[middle]?.first ?? 0) < claim.size) low = middle
      else high = middle - 1
    }
    const table = this.#claims.get(low) ?? new ClaimTable()
    table.add(claim)
    this.#claims.set(low, table)
  }

  #claimsOf(index: number): readonly Claim[] {
    return [...(this.#claims.get(index)?.all() ?? [])]
  }

  /** Returns all parts in order. */
  async run(): Promise<readonly VerifiedPart[]> {
    const { job, parts, threads = this.#threads() } = this.#options
    const runners = Array.from({ length: Math.max(1, Math.min(threads, parts.length)) }, () => {
      const runner: PartRunner = new (threads === 0 ? LocalRunner : ThreadRunner)(job, (bytes) =>
        this.#show(runner, bytes),
      )
      return runner
    })
    try {
      await Promise.all(runners.map((runner) => this.#work(runner)))
    } finally {
      await Promise.all(runners.map((runner) => runner.close()))
    }
    await this.#verifySeams()
    return this.#verified
  }

  #threads(): number {
    const { parts } = this.#options
    const total = parts.reduce((sum, { bytes }) => sum + bytes, 0)
    const files = parts.filter(({ bytes }) => bytes > 0).length
    return total < THREADS_FROM_BYTES || files < 2 ? 0 : Math.min(availableParallelism(), files, MAX_THREADS)
  }

  async #work(runner: PartRunner): Promise<void> {
    while (this.#next >= 0) {
      const index = this.#next--
      const part = this.#options.parts[index]
      if (part === undefined || part.leftUpTo !== null) continue
      const later = this.#searched
      const searching = Promise.withResolvers<void>()
      this.#searched = later.then(() => searching.promise)
      let claims: PartClaims | null
      try {
        claims = await runner.collect(part.first, part.start)
        for (const claim of claims?.earlier ?? []) this.add(claim)
      } finally {
        searching.resolve()
      }
      await later
      const result = claims === null ? null : await runner.verify(this.#claimsOf(index))
      this.#running.delete(runner)
      this.#doneBytes += part.bytes
      this.#options.onProgress(this.#doneBytes)
      if (claims === null || result === null) await this.#leave(index, part)
      else this.#verified[index] = { part, claims: { ...claims, earlier: [] }, result, archived: [] }
    }
  }

  /** The segment left while it was verified. */
  async #leave(index: number, part: PlannedPart): Promise<void> {
    await using sequence = await LedgerSequence.open(this.#options.job.ledgerPath)
    const segment = await sequence.segmentOf(part.first)
    if (segment === null) throw new SegmentListError(`${part.path} is missing, and so is its entry in the segment list`)
    this.#verified[index] = unread({ ...part, leftUpTo: segment.last })
  }

  /** Verifies segments that left, and once more the parts before which another record was found than the list states. */
  async #verifySeams(): Promise<void> {
    const { job } = this.#options
    let before: PartStart | null = null
    for (const [index, { part, claims, ...found }] of this.#verified.entries()) {
      const about = this.#claimsOf(index)
      let [result, archived] = [found.result, found.archived]
      if (part.leftUpTo !== null) {
        ;({ result, archived } = await this.#verifyLeft(part.first, part.leftUpTo, before ?? part.start, about))
      } else if (before !== null && before.head?.hash !== part.start.head?.hash) {
        await using runner = new LocalRunner(job, () => {})
        await runner.collect(part.first, before)
        result = (await runner.verify(about)) ?? result
      }
      this.#verified[index] = { part, claims, result, archived }
      if (result.problem !== null || result.torn !== null) return
      before = result.end
    }
  }

  async #verifyLeft(first: number, last: number, before: PartStart, claims: readonly Claim[]): Promise<VerifiedGap> {
    const { job } = this.#options
    await using sequence = await LedgerSequence.open(job.ledgerPath)
    const segments = sequence.segmentsOf(first, last)
    return await verifyGap({ segments, first, last, before, trust: keysOf(job).trust, claims })
  }

  #show(runner: PartRunner, bytes: number): void {
    this.#running.set(runner, bytes)
    const running = [...this.#running.values()].reduce((sum, one) => sum + one, 0)
    this.#options.onProgress(this.#doneBytes + running)
  }
}

const NO_CLAIMS: PartClaims = { checkpoints: 0, anchors: { found: 0, signed: 0, last: null }, earlier: [] }

function unread(part: PlannedPart): VerifiedPart {
  return { part, claims: NO_CLAIMS, result: nothingAfter(part.start), archived: [] }
}

function nothingAfter(end: PartStart): PartResult {
  return { problem: null, torn: null, end, bytes: 0, signed: 0, provenUpTo: -1, lastCheckpoint: -1 }
}

import { type Clock, type Ids, reasonOf } from '@plat/core'
import {
  ChunkCutter,
  type CutChunk,
  compressChunk,
  LedgerSequence,
  listed,
  localLedger,
  NotContinuedError,
  type RecordPlace,
  whyDiverged,
} from '@plat/ledger'
import type { Log } from '@plat/process'
import type { CopyOwner, LedgerCopies } from '@plat/state'
import { nameOf, writerOf } from './owner.ts'

/** Interval at which new records are shipped, in milliseconds. */
const SHIP_MS = 1_000
/** Interval at which an idle copy is claimed again, in milliseconds: a fraction of its lease. */
const CLAIM_MS = 3_000
/** Interval at which segments that left are removed from the copy, in milliseconds. */
const LEAVE_MS = 60_000
/** How long a shutdown goes on shipping, in milliseconds. */
const CLOSE_MS = 5_000

export interface ShipperOptions {
  readonly path: string
  readonly tenant: string
  readonly ledgerId: string
  /** Returns the last durable record. */
  readonly head: () => RecordPlace
  readonly copies: LedgerCopies
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
}

/** How far a copy is behind its ledger. */
export interface CopyLag {
  readonly records: number
  readonly seconds: number
  /** Nothing can be shipped until somebody acts. */
  readonly isStuck: boolean
}

/** Nothing can be shipped until somebody acts. */
class StuckError extends Error {}

/** Appends the durable records of a ledger to its copy, from the end of the copy on. No commit waits for it. */
export class CopyShipper {
  readonly #options: ShipperOptions
  readonly #stopTimer: () => void
  #owner: CopyOwner | null = null
  #cutter: ChunkCutter | null = null
  #shipped = -1
  /** Times on the monotonic clock. */
  #claimedAt = Number.NEGATIVE_INFINITY
  #leftAt = Number.NEGATIVE_INFINITY
  #levelAt: number
  #problem: string | null = null
  #isStuck = false
  #running: Promise<void> | null = null
  #endsAt = Number.POSITIVE_INFINITY

  constructor(options: ShipperOptions) {
    this.#options = options
    this.#levelAt = options.clock.monotonic()
    this.#stopTimer = options.clock.every(SHIP_MS, () => void this.ship())
  }

  /** The last record that the copy has; -1 when it has none, or before that is known. */
  get shipped(): number {
    return this.#shipped
  }

  get lag(): CopyLag {
    const { clock, head } = this.#options
    const records = Math.max(0, head().seq - this.#shipped)
    return { records, seconds: records === 0 ? 0 : (clock.monotonic() - this.#levelAt) / 1000, isStuck: this.#isStuck }
  }

  /** Ships what is durable. Never rejects: a failure is logged, and tried again. */
  ship(): Promise<void> {
    this.#running ??= this.#attempt().finally(() => {
      this.#running = null
    })
    return this.#running
  }

  /** Ships what is left, for a bounded time, and lets another process have the copy. */
  async close(): Promise<void> {
    const { clock, copies } = this.#options
    this.#stopTimer()
    this.#endsAt = clock.monotonic() + CLOSE_MS
    await this.#running
    await this.ship()
    if (this.#owner !== null) await copies.release(this.#owner).catch(() => {})
    await this.#forget()
  }

  async #attempt(): Promise<void> {
    const { log, path } = this.#options
    try {
      await this.#turn()
      if (this.#problem !== null) log.info({ path }, 'the audit ledger is copied to the state database again')
      this.#problem = null
      this.#isStuck = false
    } catch (error) {
      // The end of the copy is not known any more.
      await this.#forget()
      this.#isStuck = error instanceof StuckError || error instanceof NotContinuedError
      const problem = reasonOf(error)
      // Logs only the first of consecutive failures.
      if (problem !== this.#problem) {
        const level = this.#isStuck ? 'error' : 'warn'
        log[level]({ path, reason: problem }, 'the audit ledger cannot be copied to the state database, will retry')
      }
      this.#problem = problem
    }
  }

  async #turn(): Promise<void> {
    const { clock, head, copies } = this.#options
    const owner = await this.#claimed()
    this.#cutter ??= await this.#cutterAtEnd(owner)
    const cutter = this.#cutter
    while (clock.monotonic() < this.#endsAt) {
      const startedAt = clock.monotonic()
      const last = head().seq
      const chunk = await cutter.next(last)
      if (chunk === null) {
        this.#levelAt = startedAt
        break
      }
      await this.#append(owner, chunk)
      cutter.take(chunk)
      this.#shipped = chunk.last
      this.#claimedAt = startedAt
    }
    if (clock.monotonic() - this.#leftAt < LEAVE_MS) return
    this.#leftAt = clock.monotonic()
    await this.#letLeave(owner, copies)
  }

  async #append(owner: CopyOwner, chunk: CutChunk): Promise<void> {
    const { copies } = this.#options
    const { lines, segment, ...place } = chunk
    const data = lines === null ? null : await compressChunk(lines)
    const result = await copies.ship(owner, {
      ...place,
      data,
      entry: segment === null ? null : JSON.stringify(segment),
    })
    if (result.isDone) return
    if (result.isOthers) throw new StuckError(OTHER_WRITER)
    // The next turn finds out whether the ledger continues it.
    throw new Error(`the copy ends at record ${result.seq} now`)
  }

  async #claimed(): Promise<CopyOwner> {
    const { path, tenant, ledgerId, copies, clock, ids } = this.#options
    this.#owner ??= { ...nameOf(path, tenant), ledgerId, writer: await writerOf(path, ids) }
    const now = clock.monotonic()
    if (now - this.#claimedAt < CLAIM_MS && this.#cutter !== null) return this.#owner
    const obstacle = await copies.claim(this.#owner)
    if (obstacle === 'writer') throw new StuckError(OTHER_WRITER)
    if (obstacle === 'name') throw new StuckError('the copy under its host name and path is of another ledger')
    this.#claimedAt = now
    return this.#owner
  }

  /** Begins at the end of the copy, which the ledger must contain. */
  async #cutterAtEnd(owner: CopyOwner): Promise<ChunkCutter> {
    const { path, copies } = this.#options
    const copy = (await copies.ofLedger(owner)).find(({ ledgerId }) => ledgerId === owner.ledgerId)
    if (copy === undefined) throw new Error('the copy is missing')
    const local = await localLedger(path)
    const why = local === null ? 'there is none' : await whyDiverged(path, local, copy)
    if (why !== null) {
      throw new StuckError(
        `the ledger does not continue its copy, which ends at record ${copy.seq} (hash ${copy.hash}): ${why}`,
      )
    }
    this.#shipped = copy.seq
    return await ChunkCutter.open(path, copy)
  }

  /** Removes segments that left the ledger from the copy. */
  async #letLeave(owner: CopyOwner, copies: LedgerCopies): Promise<void> {
    const entries = (await copies.segments(owner.ledgerId)).filter(({ hasLeft }) => !hasLeft)
    if (entries.length === 0) return
    await using sequence = await LedgerSequence.open(this.#options.path)
    for (const { entry } of entries) {
      const local = await sequence.segmentOf(Number(JSON.parse(entry).first))
      if (local === null || local.file !== null || local.left === null) continue
      const { first, last } = local
      await copies.leave(owner, { first, last, entry: JSON.stringify(listed(local)) })
    }
  }

  async #forget(): Promise<void> {
    const cutter = this.#cutter
    this.#cutter = null
    await cutter?.close()
  }
}

const OTHER_WRITER =
  'another process writes its copy: two gateways have the same disk, or the same host name and path; stop one of them'

import { stat } from 'node:fs/promises'
import { type Clock, PeriodicTask, reasonOf } from '@plat/core'
import type { Log } from '@plat/process'
import type { CollectorContact } from './collector-contact.ts'
import type { Sealer } from './sealer.ts'
import type { Spool } from './spool.ts'
import { AT_EASE, type Standing } from './stage.ts'

/** How often an edge looks whether something is to be sealed, and how it stands, in milliseconds. */
const LOOK_EVERY_MS = 1000

export interface EdgeOptions {
  readonly sealer: Sealer
  readonly spool: Spool
  readonly contact: CollectorContact
  /** `offline.disconnectedAfterSeconds`, in milliseconds. */
  readonly disconnectedAfterMs: number
  /** `offline.maxRevocationStalenessSeconds`, in milliseconds; 0: lists never grow old. */
  readonly maxStalenessMs: number
  /** Empty: there is none. */
  readonly revocationsFile: string
  /** `offline.approvals` is `localApprovers`. */
  readonly asksLocally: boolean
  readonly clock: Clock
  readonly log: Log
}

/** Seals as time goes by, off the path of calls, and knows how the edge stands. */
export class Edge {
  readonly standing: Standing = { ...AT_EASE }
  readonly #options: EdgeOptions
  #looks: PeriodicTask | null = null
  #closed = false
  #problem = ''
  #wasConnected: boolean | null = null

  constructor(options: EdgeOptions) {
    this.#options = options
  }

  /** Looks for the first time, so that the first call meets the edge as it stands, then every second. */
  async start(): Promise<void> {
    this.#looks = new PeriodicTask({
      clock: this.#options.clock,
      everyMs: LOOK_EVERY_MS,
      job: () => this.#look(),
      onFault: (error) => this.#failed(reasonOf(error)),
    })
    await this.#looks.now()
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#looks?.close()
  }

  /** The collector was heard within `offline.disconnectedAfterSeconds`. */
  get connected(): boolean {
    const { contact, disconnectedAfterMs } = this.#options
    return contact.silence < disconnectedAfterMs
  }

  /** Milliseconds for which the oldest record waits to be handed to a collector; 0: none does. */
  get oldestUnforwardedMs(): number {
    const { spool, sealer, clock } = this.#options
    const [oldest] = spool.waiting()
    const since = oldest === undefined ? sealer.since : Date.parse(oldest.seal.since)
    return since === null ? 0 : Math.max(0, clock.now() - since)
  }

  async #look(): Promise<void> {
    await this.#judge()
    while (!this.#closed && (await this.#options.sealer.seal(LOOK_EVERY_MS))) await this.#judge()
    await this.#judge()
    if (this.#problem !== '') this.#options.log.info({}, 'segments are sealed again')
    this.#problem = ''
  }

  #failed(problem: string): void {
    if (problem !== this.#problem) this.#options.log.error({ problem }, 'no segment of the ledger can be sealed')
    this.#problem = problem
  }

  async #judge(): Promise<void> {
    const { sealer, asksLocally, log } = this.#options
    const { standing, connected } = this
    const { full } = standing
    const stale = await this.#isStale()
    // A spool that cannot be written takes no records either.
    standing.full = sealer.full || this.#problem !== ''
    standing.stale = stale
    standing.unasked = !connected && !asksLocally
    standing.calm = !standing.full && !stale && !standing.unasked
    if (full !== standing.full) {
      if (standing.full) log.error({}, 'the spool is full: tool calls are denied until a collector takes segments')
      else log.info({}, 'the spool has room again')
    }
    if (connected !== this.#wasConnected)
      log.info({ connected }, connected ? 'the collector is in touch' : 'this edge is disconnected')
    this.#wasConnected = connected
  }

  /** While the collector is in touch the list is taken to be current; from then on it grows old, unless its file is written anew. */
  async #isStale(): Promise<boolean> {
    const { maxStalenessMs, revocationsFile, contact, clock } = this.#options
    if (maxStalenessMs === 0 || contact.silence <= maxStalenessMs) return false
    if (revocationsFile === '') return true
    try {
      return clock.now() - (await stat(revocationsFile)).mtimeMs > maxStalenessMs
    } catch {
      return true
    }
  }
}

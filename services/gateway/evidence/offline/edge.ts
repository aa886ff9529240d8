import { stat } from 'node:fs/promises'
import { type Clock, PeriodicTask, reasonOf } from '@plat/core'
import type { Log } from '@plat/process'
import type { CollectorContact } from './collector-contact.ts'
import type { Sealer } from './sealer.ts'
import type { Spool } from './spool.ts'
import { AT_EASE, type Standing } from './stage.ts'

/** Interval of the checks, in milliseconds. */
const LOOK_EVERY_MS = 1000

export interface EdgeOptions {
  readonly sealer: Sealer
  readonly spool: Spool
  readonly contact: CollectorContact
  /** `offline.disconnectedAfterSeconds`, in milliseconds. */
  readonly disconnectedAfterMs: number
  /** `offline.maxRevocationStalenessSeconds`, in milliseconds; 0: no limit. */
  readonly maxStalenessMs: number
  /** Empty if there is none. */
  readonly revocationsFile: string
  /** `offline.approvals` is `localApprovers`. */
  readonly asksLocally: boolean
  readonly clock: Clock
  readonly log: Log
}

/** Seals segments periodically, off the path of calls, and tracks the state of the edge. */
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

  /** Makes the first check before it resolves, so that the first call sees the state, then one per second. */
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

  /** Whether the collector has answered within `offline.disconnectedAfterSeconds`. */
  get connected(): boolean {
    const { contact, disconnectedAfterMs } = this.#options
    return contact.silence < disconnectedAfterMs
  }

  /** Milliseconds since the oldest unforwarded record; 0 if there is none. */
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
    // A spool that cannot be written has no room either.
    standing.full = sealer.full || this.#problem !== ''
    standing.stale = stale
    standing.unapprovable = !connected && !asksLocally
    standing.calm = !standing.full && !stale && !standing.unapprovable
    if (full !== standing.full) {
      if (standing.full) log.error({}, 'the spool is full: tool calls are denied until a collector accepts segments')
      else log.info({}, 'the spool has room again')
    }
    if (connected !== this.#wasConnected)
      log.info({ connected }, connected ? 'the collector is in touch' : 'this edge is disconnected')
    this.#wasConnected = connected
  }

  /** The list counts as current while the collector is connected; afterwards by the age of its file. */
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

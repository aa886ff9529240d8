import type { Clock, PoolBound, PoolObserver, PoolObservers, PoolOf } from '@plat/core'
import type { Log } from '@plat/process'

/** Refusals of one pool by one bound are logged at most this often, in milliseconds. */
const LOG_EVERY_MS = 60_000

/** The pools of the broker that callers share. */
export type BrokerPool = PoolOf<'broker'>

/** Their observers. */
export type BrokerPools = PoolObservers<BrokerPool>

interface Tally {
  refusals: number
  loggedAt: number
}

/** Logs what the pools of the broker refuse. docs/spec/broker-api.md leaves `/metrics` to `plat_build_info` alone, so there are no series. */
export class PoolLog implements BrokerPools {
  readonly #clock: Clock
  readonly #log: Log
  readonly #tallies = new Map<string, Tally>()

  constructor(clock: Clock, log: Log) {
    this.#clock = clock
    this.#log = log
  }

  /** Counts a refusal; the log has the first at once, and later ones together. */
  refused(pool: BrokerPool, bound: PoolBound): void {
    const tally = this.#tallies.getOrInsertComputed(`${pool} ${bound}`, () => ({ refusals: 0, loggedAt: -Infinity }))
    tally.refusals++
    const now = this.#clock.monotonic()
    if (now - tally.loggedAt < LOG_EVERY_MS) return
    this.#log.warn({ pool, bound, refusals: tally.refusals }, 'a shared pool refuses callers')
    tally.refusals = 0
    tally.loggedAt = now
  }

  /** An observer of one pool; how full it is appears nowhere. */
  of(pool: BrokerPool): PoolObserver {
    return { watch() {}, refused: (bound: PoolBound) => this.refused(pool, bound) }
  }
}

import { Backoff, type Clock, type Ids, LruCache } from '@plat/core'

/** Callers whose failures are remembered. */
const CALLERS_MAX = 4096
/** A process that ran for longer has started well: its end is a first failure. In milliseconds. */
const HEALTHY_MS = 30_000
const FIRST_MS = 500
const LONGEST_MS = 60_000

interface Failed {
  readonly count: number
  /** Monotonic. */
  readonly until: number
}

/** Exponential backoff of starts, separately for each caller: one that makes a server crash delays only its next start. */
export class Failures {
  readonly #clock: Clock
  readonly #backoff: Backoff
  readonly #failed = new LruCache<string, Failed>({ maxEntries: CALLERS_MAX })

  constructor(clock: Clock, ids: Ids) {
    this.#clock = clock
    this.#backoff = new Backoff({ firstMs: FIRST_MS, maxMs: LONGEST_MS, ids })
  }

  /** Returns the time until the next start is permitted, in milliseconds. */
  waitMs(caller: string): number {
    return Math.max(0, (this.#failed.get(caller)?.until ?? 0) - this.#clock.monotonic())
  }

  /** Counts the unexpected end of a process that ran for `ranMs`. Returns the time until the next start. */
  failed(caller: string, ranMs: number): number {
    const before = ranMs > HEALTHY_MS ? 0 : (this.#failed.get(caller)?.count ?? 0)
    const pauseMs = this.#backoff.pauseMs(before)
    this.#failed.set(caller, { count: before + 1, until: this.#clock.monotonic() + pauseMs })
    return Math.round(pauseMs)
  }
}

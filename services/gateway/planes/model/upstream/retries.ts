import type { Backoff, Clock } from '@plat/core'
import type { CallSignal } from '../../../call/index.ts'
import type { RetryMetrics } from '../metrics.ts'
import type { ModelEndpoint } from './endpoint.ts'

/** Retries of a route. */
export interface RetryPolicy {
  /** Further attempts of a call after all endpoints were tried; 0: none. */
  readonly attempts: number
  /** Share of the route's calls that may be retried, in percent. */
  readonly budgetPercent: number
  /** Longest wait before a retry, in milliseconds. */
  readonly maxWaitMs: number
}

/** Period over which the calls and retries of a route are compared, in milliseconds, and its parts. */
const PERIOD_MS = 10_000
const PARTS = 10
const PART_MS = PERIOD_MS / PARTS
/** Retries in a period that need no share of calls, so that routes with few calls can retry. */
const MIN_RETRIES = 3

/** Calls and retries of a route in the last seconds, of this replica. */
export class RetryBudget {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #calls = new Array<number>(PARTS).fill(0)
  readonly #retries = new Array<number>(PARTS).fill(0)
  /** Part of time that was counted last. */
  #part = 0

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  /** Counts a call. */
  called(): void {
    const at = this.#now()
    this.#calls[at] = (this.#calls[at] ?? 0) + 1
  }

  /** Counts a retry if the share allows it. */
  take(percent: number): boolean {
    const at = this.#now()
    const allowed = Math.max(MIN_RETRIES, (sum(this.#calls) * percent) / 100)
    if (sum(this.#retries) + 1 > allowed) return false
    this.#retries[at] = (this.#retries[at] ?? 0) + 1
    return true
  }

  /** Returns the index of the current part, and empties parts that are over. */
  #now(): number {
    const part = Math.floor(this.#clock.monotonic() / PART_MS)
    for (let over = Math.max(this.#part + 1, part - PARTS + 1); over <= part; over++) {
      this.#calls[over % PARTS] = 0
      this.#retries[over % PARTS] = 0
    }
    this.#part = part
    return part % PARTS
  }
}

function sum(counts: readonly number[]): number {
  return counts.reduce((all, one) => all + one, 0)
}

/** An endpoint that may get the same request again. */
interface Repeatable {
  readonly endpoint: ModelEndpoint
  /** Monotonic milliseconds: not before. */
  readonly at: number
}

export interface RetryOptions {
  readonly route: string
  readonly policy: RetryPolicy
  readonly budget: RetryBudget
  readonly backoff: Pick<Backoff, 'pauseMs'>
  readonly clock: Pick<Clock, 'monotonic' | 'after'>
  readonly metrics: RetryMetrics
}

/**
 * The retries of one call. A request is repeated only at endpoints that refused it before processing it, or if repeating it has no effect,
 * and never before the time that the endpoint stated.
 */
export class Retries {
  readonly #options: RetryOptions
  #repeatable: Repeatable[] = []
  #done = 0
  /** The wait before the next round; null: none is granted. */
  #pauseMs: number | null = null

  constructor(options: RetryOptions) {
    this.#options = options
    options.budget.called()
  }

  /** Notes that an endpoint may get the request again after `waitMs`. */
  note(endpoint: ModelEndpoint, waitMs: number): void {
    this.#repeatable.push({ endpoint, at: this.#options.clock.monotonic() + waitMs })
  }

  /** Returns true if there will be another round, also for `further`, an endpoint that was not noted yet. */
  grant(further?: { readonly endpoint: ModelEndpoint; readonly waitMs: number }): boolean {
    const { route, policy, budget, backoff, clock, metrics } = this.#options
    if (this.#pauseMs !== null) return true
    const now = clock.monotonic()
    const waits = this.#repeatable.map(({ at }) => Math.max(0, at - now))
    if (further !== undefined) waits.push(further.waitMs)
    if (this.#done >= policy.attempts || waits.length === 0) return false
    const pauseMs = backoff.pauseMs(this.#done, Math.min(...waits))
    if (pauseMs > policy.maxWaitMs) metrics.retried(route, 'wait')
    else if (!budget.take(policy.budgetPercent)) metrics.retried(route, 'budget')
    else this.#pauseMs = pauseMs
    return this.#pauseMs !== null
  }

  /** Waits for the granted round. Returns its endpoints; none if the call was aborted. */
  async next(signal: CallSignal): Promise<readonly ModelEndpoint[]> {
    const { clock, route, metrics } = this.#options
    const pauseMs = this.#pauseMs ?? 0
    this.#pauseMs = null
    this.#done++
    await paused(clock, pauseMs, signal)
    if (signal.aborted) return []
    metrics.retried(route, 'sent')
    const now = clock.monotonic()
    const ready = this.#repeatable.filter(({ at }) => at <= now)
    this.#repeatable = []
    return ready.map(({ endpoint }) => endpoint)
  }
}

/** Resolves after `ms`, or when the call is aborted. */
function paused(clock: Pick<Clock, 'after'>, ms: number, signal: CallSignal): Promise<void> {
  return new Promise((resolve) => {
    const over = () => {
      cancel()
      signal.removeEventListener('abort', over)
      resolve()
    }
    const cancel = clock.after(ms, over)
    if (signal.aborted) over()
    else signal.addEventListener('abort', over)
  })
}

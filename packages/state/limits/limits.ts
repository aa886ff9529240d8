/** One amount against one cap in one window: money, tokens or calls. */
export interface HoldItem {
  /** `usd/session/<ns>/<agent>/<s>`, `usd/<budget>`, `tokens/<budget>`, `rate/<policy>/<rule>/<subject>`, `tpm/<session>/<route>`. */
  readonly key: string
  /** `2026-11-20`, `2026-11`, `life`, an epoch minute, or `<start>+<length>` in epoch seconds: see `windowEnd`. */
  readonly window: string
  /** A whole number from 0 on, like `amount`. */
  readonly cap: number
  readonly amount: number
  readonly unit: 'micros' | 'tokens' | 'calls'
}

/** What was taken before a call and is settled after it. */
export interface Hold {
  readonly id: string
  /** The runner writes them into the intent. */
  readonly items: readonly HoldItem[]
  /** What was spent in the end, by key; null while the hold is open. The runner writes it into the outcome. */
  readonly settled: ReadonlyMap<string, number> | null
  /** Takes more, all or nothing. */
  extend(items: readonly HoldItem[]): Short | null | Promise<Short | null>
  /**
   * By key, in every window of that key; a key that is not there has spent its whole hold. Once: later calls change nothing.
   * More than was held is counted as well, and reported as an overrun.
   */
  settle(actual: ReadonlyMap<string, number>): void | Promise<void>
  /** Gives everything back: settles with nothing. */
  release(): void | Promise<void>
}

/** The cap that was too short. */
export interface Short {
  readonly kind: 'short'
  readonly key: string
  readonly left: number
  /** Milliseconds since the epoch; null for a window that never resets. */
  readonly resetsAt: number | null
}

/** Tells what was too short from what was taken. */
export function isShort(answer: Hold | Short): answer is Short {
  return 'kind' in answer
}

/** A call that cost more than was held for it. */
export interface Overrun {
  readonly id: string
  readonly key: string
  readonly held: number
  readonly spent: number
}

/** Counts what is spent and held under caps. Unreachable throws, and the call is denied. */
export interface Limits {
  /**
   * All or nothing. The same id gets the same answer while its hold is open, and the hold then belongs to the last take; with other items
   * it throws. A take that failed holds nothing, also when it is counted later than its failure.
   * `expiresAt` (milliseconds since the epoch) is for holds whose owner is gone: then the whole hold counts as spent. `caller`: in whose
   * share new counters are kept; without one all share one.
   */
  take(id: string, items: readonly HoldItem[], expiresAt: number, caller?: string): Hold | Short | Promise<Hold | Short>
  used(key: string, window: string): Promise<{ spent: number; held: number }>
  /** The clock that decides windows, in milliseconds since the epoch: callers name windows and expiry by it. */
  now(): number
}

import type { PoolBound, PoolCaller } from '@plat/core'

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
  /** The limit in words, for refusals: `the limit of 10 calls …`; absent: its key. Not recorded. */
  readonly limit?: string
  /** The template that the counter is one of, by whose share new counters are bounded; absent: none. Not recorded. */
  readonly template?: string
}

/** Amounts reserved before a call and settled after it. */
export interface Hold {
  readonly id: string
  /** Recorded in the intent. */
  readonly items: readonly HoldItem[]
  /** Amount spent by key; null while the hold is open. Recorded in the outcome. */
  readonly settled: ReadonlyMap<string, number> | null
  /** Reserves more, all or nothing. */
  extend(items: readonly HoldItem[]): Short | null | Promise<Short | null>
  /**
   * Spent amounts by key, in every window of that key; an omitted key has spent its whole hold. Only the first call has an effect. An amount above
   * the hold is counted and reported as an overrun.
   */
  settle(actual: ReadonlyMap<string, number>): void | Promise<void>
  /** Returns everything: settles with zero. */
  release(): void | Promise<void>
}

/** The cap that was exceeded. */
export interface Short {
  readonly kind: 'short'
  readonly key: string
  readonly left: number
  /** Milliseconds since the epoch; null for a window that never resets. */
  readonly resetsAt: number | null
}

/** Distinguishes a refusal from a hold. */
export function isShort(answer: Hold | Short): answer is Short {
  return 'kind' in answer
}

/** A call that cost more than its hold. */
export interface Overrun {
  readonly id: string
  readonly key: string
  readonly held: number
  readonly spent: number
}

/** A caller has used up its share of holds or of reservations that wait, or all callers together their total. */
export class PoolFullError extends Error {
  constructor(units: string, bound: PoolBound) {
    super(`too many ${units}, ${bound === 'share' ? 'of this caller' : 'of all callers'}`)
  }
}

/** Counts amounts spent and held under caps. Throws when unreachable, and the call is denied. */
export interface Limits {
  /**
   * All or nothing. The same id gets the same result while its hold is open, and the hold then belongs to the last take; other items throw. A failed
   * take holds nothing, even when it is counted after its failure. `expiresAt` (milliseconds since the epoch) applies to holds whose owner is gone:
   * then the whole hold counts as spent. `caller` (agent, session) selects the shares of holds and counters; callers without one have a common
   * share. Throws PoolFullError if a share or total is used up.
   */
  take(
    id: string,
    items: readonly HoldItem[],
    expiresAt: number,
    caller?: PoolCaller,
  ): Hold | Short | Promise<Hold | Short>
  used(key: string, window: string): Promise<{ spent: number; held: number }>
  /** Milliseconds since the epoch by the clock that decides windows: callers name windows and expiry by it. */
  now(): number
}

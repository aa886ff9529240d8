/** One amount against one cap in one window: money, tokens or calls. */
export interface HoldItem {
  /** `usd/session/<ns>/<agent>/<s>`, `rate/<policy>/<rule>/<subject>`, `tpm/<session>`. */
  readonly key: string
  /** `2026-11-20`, `2026-11`, `life`, or an epoch minute. */
  readonly window: string
  readonly cap: number
  readonly amount: number
  readonly unit: 'micros' | 'tokens' | 'calls'
}

/** What was taken before a call and is settled after it. */
export interface Hold {
  readonly id: string
  /** The runner writes them into the intent. */
  readonly items: readonly HoldItem[]
  extend(items: readonly HoldItem[]): Short | null | Promise<Short | null>
  /** By key, in every window of that key. */
  settle(actual: ReadonlyMap<string, number>): void | Promise<void>
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

/** Counts what is spent and held under caps. All or nothing; the same id gets the same answer; unreachable throws, and the call is denied. */
export interface Limits {
  take(id: string, items: readonly HoldItem[], expiresAt: number): Hold | Short | Promise<Hold | Short>
  used(key: string, window: string): Promise<{ spent: number; held: number }>
}

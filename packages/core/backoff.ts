import type { Ids } from './ids.ts'

export interface BackoffOptions {
  /** Longest pause after the first failure, in milliseconds; it doubles with each further one. */
  readonly firstMs: number
  /** Longest pause of all, in milliseconds. */
  readonly maxMs: number
  readonly ids: Pick<Ids, 'random'>
}

/** Values of two random bytes. */
const RANDOM_VALUES = 65_536

/** Exponential backoff with jitter and a cap: clients that failed together do not retry together. */
export class Backoff {
  readonly #options: BackoffOptions

  constructor(options: BackoffOptions) {
    this.#options = options
  }

  /**
   * Returns the pause before the next attempt, in milliseconds: between half and the whole of the exponential one. `failures` counts the
   * consecutive failures before the latest, from 0. `retryAfterMs`, where a server sent one, is waited for in addition; `maxMs` caps it too.
   */
  pauseMs(failures: number, retryAfterMs = 0): number {
    const { firstMs, maxMs, ids } = this.#options
    const [high = 0, low = 0] = ids.random(2)
    const jitter = (high * 256 + low) / RANDOM_VALUES / 2
    return Math.min(maxMs, retryAfterMs) + Math.min(maxMs, firstMs * 2 ** failures) * (1 - jitter)
  }
}

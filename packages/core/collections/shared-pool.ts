/** The bound that a refused caller met: its own share, or the total of the pool. */
export type PoolBound = 'share' | 'total'

export interface SharedPoolOptions {
  /** Units that all callers together may hold. */
  readonly total: number
  /** Units that one caller may hold; below `total`, so that no caller can exhaust the pool alone. */
  readonly share: number
  /** Called once for each refusal, such as to count it. */
  readonly onRefused?: ((bound: PoolBound) => void) | undefined
}

/**
 * Counts how much of a bounded resource each caller holds. It keeps numbers only: the resource itself, and its age, stay with the owner
 * of the pool. A caller that holds nothing leaves no entry behind.
 */
export class SharedPool {
  readonly #options: SharedPoolOptions
  readonly #held = new Map<string, number>()
  #used = 0

  constructor(options: SharedPoolOptions) {
    this.#options = options
  }

  /** Units held by all callers. */
  get used(): number {
    return this.#used
  }

  /** Callers that hold something. */
  get callers(): number {
    return this.#held.size
  }

  usedBy(caller: string): number {
    return this.#held.get(caller) ?? 0
  }

  /** Returns null when the units are acquired, otherwise the bound that was met; then nothing has changed. */
  acquire(caller: string, units = 1): PoolBound | null {
    const held = this.usedBy(caller)
    const { share, total, onRefused } = this.#options
    const bound = held + units > share ? 'share' : this.#used + units > total ? 'total' : null
    if (bound === null) this.add(caller, units)
    else onRefused?.(bound)
    return bound
  }

  /** Counts units without a limit: those that were admitted elsewhere, such as by another replica or before a restart. */
  add(caller: string, units = 1): void {
    this.#held.set(caller, this.usedBy(caller) + units)
    this.#used += units
  }

  /** Returns units; only those that were acquired. */
  release(caller: string, units = 1): void {
    const left = this.usedBy(caller) - units
    if (left > 0) this.#held.set(caller, left)
    else this.#held.delete(caller)
    this.#used -= units
  }
}

import { type PoolObserver, type SharedPool, watchedPool } from '@plat/core'
import { AdminError } from '../error.ts'

/** Shares reading the ledger among the callers of the admin API: a page costs a search through the file, and a replay minutes. */
export class LedgerReaders {
  readonly #pool: SharedPool

  constructor(observer: PoolObserver | undefined) {
    this.#pool = watchedPool({ name: 'ledger_readers', observer })
  }

  /** Rejects with `rate_limited` where this caller, or all together, have too many requests under way. */
  async read<T>(caller: string, work: () => T): Promise<Awaited<T>> {
    const bound = this.#pool.acquire(caller)
    if (bound !== null) {
      const others = bound === 'share' ? 'of this caller' : 'of all callers'
      throw new AdminError('rate_limited', `too many requests ${others} read the ledger: try again when one has ended`)
    }
    try {
      return await work()
    } finally {
      this.#pool.release(caller)
    }
  }
}

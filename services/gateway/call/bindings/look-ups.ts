import { type Clock, type PoolCaller, reasonOf, type SharedPool } from '@plat/core'
import type { Log } from '@plat/process'
import { agentOf, type Identity } from '../facts.ts'

/** How long a look-up counts for its caller, in milliseconds. */
const COUNTED_MS = 1_000

export interface LookUpsOptions {
  /** Resolves when this replica knows what all others stored before; null: no other replica writes. */
  readonly catchUp: (() => Promise<void>) | null
  readonly pool: SharedPool
  readonly clock: Clock
  readonly log: Log
}

/**
 * Looks up ids that are unknown here: a faster client may name at one replica what it created at another, before the journal's next poll. Each
 * look-up reads the journals at most once, and concurrent ones share a read. A caller that guesses ids uses up its share for a second.
 */
export class LookUps {
  readonly #options: LookUpsOptions

  constructor(options: LookUpsOptions) {
    this.#options = options
  }

  /**
   * Resolves when what other replicas stored before is known here. Returns null if no other replica writes, or the caller is at its share: what is
   * unknown stays so until the next poll. Never rejects.
   */
  catchUpFor(identity: Pick<Identity, 'tenant' | 'namespace' | 'agent' | 'session'>): Promise<void> | null {
    const agent = agentOf(identity)
    return this.catchUpBy([agent, `${agent}/${identity.session}`])
  }

  /** As `catchUpFor`, for a caller whose name in the pool is known. */
  catchUpBy(caller: PoolCaller): Promise<void> | null {
    const { catchUp, pool, clock, log } = this.#options
    if (catchUp === null) return null
    if (pool.acquire(caller) !== null) return null
    clock.after(COUNTED_MS, () => pool.release(caller))
    return catchUp().catch((error: unknown) => {
      log.warn({ error: reasonOf(error) }, 'what other replicas stored could not be read: unknown ids stay unknown')
    })
  }
}

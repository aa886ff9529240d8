import { type Clock, LruCache, type PoolBound, SharedPool } from '@plat/core'
import { TimeoutError, TooManyLookupsError } from './errors.ts'

/** Resolves a name to all of its addresses. */
export type Lookup = (hostname: string) => Promise<readonly { readonly address: string; readonly family: number }[]>

export type Addresses = Awaited<ReturnType<Lookup>>

/** Maximum number of concurrent look-ups. Each occupies a libuv thread until the system responds; the launcher provides 16. */
const MAX_RUNNING = 8
/** Maximum number of concurrent look-ups per caller. */
const MAX_RUNNING_OF_CALLER = 2
/** Maximum wait of a connection for its name, in milliseconds. The system call cannot be interrupted: its thread stays occupied. */
const LOOKUP_MS = 5_000
/** How long a missing name is cached, in milliseconds. */
const NEGATIVE_MS = 1_000
/** Maximum number of cached missing names. */
const MAX_NEGATIVE = 1_024

interface Pending {
  readonly hostname: string
  readonly caller: string
  readonly done: PromiseWithResolvers<Addresses>
}

interface Missing {
  readonly error: Error
  /** Monotonic milliseconds. */
  readonly until: number
}

/** Resolves names with bounded concurrency and a share for each caller. Concurrent look-ups of one name share one query. */
export class NameLookups {
  readonly #lookup: Lookup
  readonly #clock: Clock
  readonly #running = new Map<string, Promise<Addresses>>()
  readonly #slots = new SharedPool({ name: 'name_lookups', total: MAX_RUNNING, shares: [MAX_RUNNING_OF_CALLER] })
  readonly #pool = new SharedPool({ name: 'name_lookups' })
  /** In the order of arrival. */
  readonly #waiting = new Set<Pending>()
  readonly #missing = new LruCache<string, Missing>({ maxEntries: MAX_NEGATIVE })

  constructor(lookup: Lookup, clock: Clock) {
    this.#lookup = lookup
    this.#clock = clock
  }

  /** Number of running and waiting look-ups. */
  get used(): number {
    return this.#pool.used
  }

  /** Rejects with the error of the system, a `TimeoutError`, or `TooManyLookupsError` after calling `onRefused`. */
  async resolve(hostname: string, caller: string, onRefused?: (bound: PoolBound) => void): Promise<Addresses> {
    const missing = this.#missing.get(hostname)
    if (missing !== undefined && this.#clock.monotonic() < missing.until) throw missing.error
    const bound = this.#pool.acquire(caller)
    if (bound !== null) {
      onRefused?.(bound)
      throw new TooManyLookupsError(hostname)
    }
    const pending: Pending = { hostname, caller, done: Promise.withResolvers() }
    const cancel = this.#clock.after(LOOKUP_MS, () =>
      pending.done.reject(new TimeoutError(`${hostname} was not resolved within ${LOOKUP_MS} ms.`)),
    )
    this.#waiting.add(pending)
    this.#startWaiting()
    try {
      return await pending.done.promise
    } finally {
      cancel()
      this.#waiting.delete(pending)
      this.#pool.release(caller)
    }
  }

  /** Starts waiting look-ups. A caller at its limit does not block those behind it. */
  #startWaiting(): void {
    for (const pending of this.#waiting) {
      const running = this.#running.get(pending.hostname) ?? this.#start(pending)
      if (running === null) continue
      this.#waiting.delete(pending)
      running.then(pending.done.resolve, pending.done.reject)
    }
  }

  /** Returns null when no slot is free for the caller. */
  #start({ hostname, caller }: Pending): Promise<Addresses> | null {
    if (this.#slots.acquire(caller) !== null) return null
    const running = this.#lookup(hostname).finally(() => {
      this.#running.delete(hostname)
      this.#slots.release(caller)
      this.#startWaiting()
    })
    running.catch((error: unknown) => this.#remember(hostname, error))
    this.#running.set(hostname, running)
    return running
  }

  #remember(hostname: string, error: unknown): void {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOTFOUND')) return
    this.#missing.set(hostname, { error, until: this.#clock.monotonic() + NEGATIVE_MS })
  }
}

import type { Clock } from '../clock.ts'
import type { PoolCaller, SharedPool } from '../pools/shared-pool.ts'
import { type Expiring, ExpiryHeap } from './expiry-heap.ts'

export interface ExpiringOptions {
  readonly clock: Clock
  /** Entries at most; a pool where callers share them. */
  readonly cap: number | SharedPool
}

interface Entry<V> extends Expiring {
  readonly key: string
  readonly value: V
  readonly caller: PoolCaller
}

/**
 * A map whose entries have an end and whose number has a cap, for what callers key: nonces, replays, records. An expired entry is not
 * there any more, and no entry is forgotten before its end. Insertions never overwrite and, being synchronous, are atomic. Expired
 * entries are found by a heap: the head of a `Map` from which the oldest were deleted is found only by skipping all that was deleted.
 */
export class ExpiringMap<V> {
  readonly #entries = new Map<string, Entry<V>>()
  readonly #byEnd = new ExpiryHeap<Entry<V>>()
  readonly #options: ExpiringOptions

  constructor(options: ExpiringOptions) {
    this.#options = options
  }

  /** Entries that are held, expired ones that were not dropped yet included. */
  get size(): number {
    return this.#entries.size
  }

  get(key: string): V | null {
    const entry = this.#entries.get(key)
    if (entry === undefined) return null
    if (this.#options.clock.now() < entry.until) return entry.value
    this.#drop(entry)
    return null
  }

  /**
   * `taken`: the key is there already. `full`: the cap, or the share of `caller`, is reached by entries that still live. `until` in
   * milliseconds since the epoch.
   */
  insert(key: string, value: V, until: number, caller: PoolCaller = ''): 'inserted' | 'taken' | 'full' {
    if (this.get(key) !== null) return 'taken'
    this.#dropExpired()
    const { cap } = this.#options
    if (typeof cap === 'number' ? this.#entries.size >= cap : cap.acquire(caller) !== null) return 'full'
    const entry: Entry<V> = { key, value, until, caller, place: -1 }
    this.#entries.set(key, entry)
    this.#byEnd.add(entry)
    return 'inserted'
  }

  /** Whether the cap, or the share of `caller`, is reached by entries that still live. */
  isFull(caller: PoolCaller = ''): boolean {
    this.#dropExpired()
    const { cap } = this.#options
    return typeof cap === 'number' ? this.#entries.size >= cap : cap.boundFor(caller) !== null
  }

  /** Removes an entry and returns its value: of several callers exactly one gets it. */
  take(key: string): V | null {
    const value = this.get(key)
    const entry = this.#entries.get(key)
    if (entry !== undefined) this.#drop(entry)
    return value
  }

  #dropExpired(): void {
    const now = this.#options.clock.now()
    for (let { first } = this.#byEnd; first !== null && now >= first.until; { first } = this.#byEnd) this.#drop(first)
  }

  #drop(entry: Entry<V>): void {
    this.#entries.delete(entry.key)
    this.#byEnd.delete(entry)
    if (typeof this.#options.cap !== 'number') this.#options.cap.release(entry.caller)
  }
}

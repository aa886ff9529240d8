import type { Clock } from '../clock.ts'
import type { PoolCaller, SharedPool } from '../pools/shared-pool.ts'
import { type Expiring, ExpiryHeap } from './expiry-heap.ts'

export interface ExpiringOptions {
  readonly clock: Clock
  /** Maximum number of entries; a pool when callers share them. */
  readonly cap: number | SharedPool
}

interface Entry<V> extends Expiring {
  readonly key: string
  readonly value: V
  readonly caller: PoolCaller
}

/**
 * A map whose entries expire and whose number is capped, for keys chosen by callers: nonces, replay checks, records. Expired entries are never
 * returned, and no entry is evicted before it expires. Insertions never overwrite and, being synchronous, are atomic. A heap finds expired entries:
 * in a `Map`, finding the oldest one skips all entries deleted before it.
 */
export class ExpiringMap<V> {
  readonly #entries = new Map<string, Entry<V>>()
  readonly #byEnd = new ExpiryHeap<Entry<V>>()
  readonly #options: ExpiringOptions

  constructor(options: ExpiringOptions) {
    this.#options = options
  }

  /** Number of entries, including expired ones not removed yet. */
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
   * Returns `taken` when the key exists, and `full` when live entries fill the cap or the share of `caller`. `until` is in milliseconds since the
   * epoch.
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

  /** Returns whether live entries fill the cap or the share of `caller`. */
  isFull(caller: PoolCaller = ''): boolean {
    this.#dropExpired()
    const { cap } = this.#options
    return typeof cap === 'number' ? this.#entries.size >= cap : cap.boundFor(caller) !== null
  }

  /** Removes an entry and returns its value; of several callers exactly one gets it. */
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

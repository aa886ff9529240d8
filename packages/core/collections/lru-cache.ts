import { LinkedMap } from './linked-map.ts'

export interface LruCacheOptions<K, V> {
  readonly maxEntries: number
  /** Maximum total weight of all entries, such as characters. */
  readonly maxWeight?: number
  /** Weight of a value; must be constant. Required with `maxWeight`. */
  readonly weigh?: (value: V) => number
  /** Called for each evicted entry. */
  readonly onEvicted?: (value: V, key: K) => void
}

/** A cache that evicts the least recently used entry. Every operation takes constant time. */
export class LruCache<K, V> implements Iterable<[K, V]> {
  readonly #entries = new LinkedMap<K, V>()
  readonly #options: LruCacheOptions<K, V>
  #weight = 0

  constructor(options: LruCacheOptions<K, V>) {
    this.#options = options
  }

  get size(): number {
    return this.#entries.size
  }

  /** Returns a value and marks it as used. */
  get(key: K): V | undefined {
    this.#entries.renew(key)
    return this.#entries.get(key)
  }

  /** Returns a value without marking it as used. */
  peek(key: K): V | undefined {
    return this.#entries.get(key)
  }

  /** Inserts or replaces an entry and marks it as used. One heavier than the limit is not stored. */
  set(key: K, value: V): void {
    this.delete(key)
    this.#entries.set(key, value)
    this.#weight += this.#weigh(value)
    const { maxEntries, maxWeight = Number.POSITIVE_INFINITY, onEvicted } = this.#options
    while (this.#entries.size > maxEntries || this.#weight > maxWeight) {
      const { oldest } = this.#entries
      if (oldest === null) return
      this.delete(oldest[0])
      onEvicted?.(oldest[1], oldest[0])
    }
  }

  /** Returns false when there is no such entry. */
  delete(key: K): boolean {
    const value = this.#entries.get(key)
    if (value !== undefined) this.#weight -= this.#weigh(value)
    return this.#entries.delete(key)
  }

  clear(): void {
    this.#entries.clear()
    this.#weight = 0
  }

  /** Iterates from the least recently used entry. Entries may be deleted meanwhile. */
  [Symbol.iterator](): Generator<[K, V]> {
    return this.#entries[Symbol.iterator]()
  }

  keys(): Generator<K> {
    return this.#entries.keys()
  }

  values(): Generator<V> {
    return this.#entries.values()
  }

  #weigh(value: V): number {
    return this.#options.weigh?.(value) ?? 0
  }
}

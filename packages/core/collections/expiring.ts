import type { Clock } from '../clock.ts'

export interface ExpiringOptions {
  readonly clock: Clock
  /** Entries at most. */
  readonly cap: number
}

interface Entry<V> {
  readonly value: V
  /** Milliseconds since the epoch. */
  readonly until: number
}

/** A full map is searched for expired entries at most this often: under a flood each insertion must stay cheap. */
const SWEEP_EVERY_MS = 1000

/**
 * A map whose entries have an end and whose number has a cap, for what callers key: nonces, replays, records. An entry that
 * has expired is not there any more. Insertions never overwrite and, being synchronous, are atomic.
 */
export class ExpiringMap<V> {
  readonly #entries = new Map<string, Entry<V>>()
  readonly #options: ExpiringOptions
  #sweptAt = Number.NEGATIVE_INFINITY

  constructor(options: ExpiringOptions) {
    this.#options = options
  }

  /** Entries that are held, expired ones that were not swept yet included. */
  get size(): number {
    return this.#entries.size
  }

  get(key: string): V | null {
    const entry = this.#entries.get(key)
    if (entry === undefined) return null
    if (this.#options.clock.now() < entry.until) return entry.value
    this.#entries.delete(key)
    return null
  }

  /** `taken`: the key is there already. `full`: the cap is reached by entries that still live. `until` in ms since the epoch. */
  insert(key: string, value: V, until: number): 'inserted' | 'taken' | 'full' {
    if (this.get(key) !== null) return 'taken'
    if (this.isFull()) return 'full'
    this.#entries.set(key, { value, until })
    return 'inserted'
  }

  /** Is the cap reached by entries that still live? */
  isFull(): boolean {
    this.#dropExpiredHead()
    if (this.#entries.size >= this.#options.cap) this.#sweep()
    return this.#entries.size >= this.#options.cap
  }

  /** Removes an entry and answers its value: of several callers exactly one gets it. */
  take(key: string): V | null {
    const value = this.get(key)
    this.#entries.delete(key)
    return value
  }

  /** Most entries live equally long: the oldest are at the head, and dropping them as they expire costs next to nothing. */
  #dropExpiredHead(): void {
    const now = this.#options.clock.now()
    for (const [key, { until }] of this.#entries) {
      if (now < until) return
      this.#entries.delete(key)
    }
  }

  #sweep(): void {
    const { clock } = this.#options
    if (clock.monotonic() - this.#sweptAt < SWEEP_EVERY_MS) return
    this.#sweptAt = clock.monotonic()
    const now = clock.now()
    for (const [key, { until }] of this.#entries) if (now >= until) this.#entries.delete(key)
  }
}

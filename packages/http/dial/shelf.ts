/** Things that are opened on first use and kept: beyond the limit the one unused for longest makes room. */
export class Shelf<T> {
  readonly #limit: number
  readonly #retire: (thing: T) => void
  readonly #kept = new Map<string, { readonly thing: T; usedAt: number }>()
  #uses = 0

  constructor(limit: number, retire: (thing: T) => void) {
    this.#limit = limit
    this.#retire = retire
  }

  get(key: string): T | undefined {
    const kept = this.#kept.get(key)
    if (kept === undefined) return undefined
    kept.usedAt = ++this.#uses
    return kept.thing
  }

  put(key: string, thing: T): T {
    if (this.#kept.size >= this.#limit) this.#makeRoom()
    this.#kept.set(key, { thing, usedAt: ++this.#uses })
    return thing
  }

  *values(): Generator<T> {
    for (const { thing } of this.#kept.values()) yield thing
  }

  /** Hands everything out and keeps nothing. */
  clear(): T[] {
    const things = [...this.#kept.values()].map(({ thing }) => thing)
    this.#kept.clear()
    return things
  }

  #makeRoom(): void {
    let oldest: string | null = null
    let usedAt = Number.POSITIVE_INFINITY
    for (const [key, kept] of this.#kept) {
      if (kept.usedAt >= usedAt) continue
      oldest = key
      usedAt = kept.usedAt
    }
    const kept = oldest === null ? undefined : this.#kept.get(oldest)
    if (oldest === null || kept === undefined) return
    this.#kept.delete(oldest)
    this.#retire(kept.thing)
  }
}

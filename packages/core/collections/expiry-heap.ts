/** Entry of an `ExpiryHeap`. Only the heap writes `place`. */
export interface Expiring {
  /** Milliseconds since the epoch. */
  readonly until: number
  place: number
}

/** A binary heap ordered by expiry. Operations take logarithmic time, and constant time for an entry that expires after all others. */
export class ExpiryHeap<T extends Expiring> {
  readonly #entries: T[] = []

  /** Entry that expires first; null when the heap is empty. */
  get first(): T | null {
    return this.#entries[0] ?? null
  }

  add(entry: T): void {
    this.#entries.push(entry)
    this.#raise(entry, this.#entries.length - 1)
  }

  /** Caller must pass an entry that is in the heap. */
  delete(entry: T): void {
    const last = this.#entries.pop()
    if (last === undefined || last === entry) return
    this.#raise(last, entry.place)
    this.#lower(last, last.place)
  }

  #raise(entry: T, from: number): void {
    let place = from
    while (place > 0) {
      const parent = this.#entries[(place - 1) >> 1]
      if (parent === undefined || parent.until <= entry.until) break
      this.#put(parent, place)
      place = (place - 1) >> 1
    }
    this.#put(entry, place)
  }

  #lower(entry: T, from: number): void {
    let place = from
    for (;;) {
      const left = this.#entries[2 * place + 1]
      const right = this.#entries[2 * place + 2]
      const child = left !== undefined && right !== undefined && right.until < left.until ? right : left
      if (child === undefined || child.until >= entry.until) break
      const { place: childPlace } = child
      this.#put(child, place)
      place = childPlace
    }
    this.#put(entry, place)
  }

  #put(entry: T, place: number): void {
    this.#entries[place] = entry
    entry.place = place
  }
}

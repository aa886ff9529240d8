/** Number of lists: enough that entries of a busy gateway rarely share one. */
const LISTS = 4096

/** Entry of `ById`, linked to the next one in its list. */
export interface Listed<T> {
  readonly id: string
  next: T | null
}

/**
 * Entries by id, added and removed with each call. A `Map` would replace its table every few dozen steps, and the old tables retain their entries
 * until a full collection.
 */
export class ById<T extends Listed<T>> {
  readonly #first: (T | null)[] = new Array<T | null>(LISTS).fill(null)
  #size = 0

  get size(): number {
    return this.#size
  }

  get(id: string): T | null {
    let entry = this.#first[listOf(id)] ?? null
    while (entry !== null && entry.id !== id) entry = entry.next
    return entry
  }

  /** Caller must pass an id that is not present. */
  add(entry: T): void {
    const list = listOf(entry.id)
    entry.next = this.#first[list] ?? null
    this.#first[list] = entry
    this.#size++
  }

  /** No effect on an absent entry. */
  delete(entry: T): void {
    const list = listOf(entry.id)
    let before: T | null = null
    let at = this.#first[list] ?? null
    while (at !== null && at !== entry) {
      before = at
      at = at.next
    }
    if (at === null) return
    if (before === null) this.#first[list] = entry.next
    else before.next = entry.next
    entry.next = null
    this.#size--
  }

  /** Returns all entries, in no order. */
  all(): T[] {
    const all: T[] = []
    for (const first of this.#first) for (let entry = first; entry !== null; entry = entry.next) all.push(entry)
    return all
  }
}

/** Hashes the end of an id, which is random in the ids of calls. */
function listOf(id: string): number {
  const { length } = id
  let hash = 0
  for (let at = Math.max(0, length - 6); at < length; at++) hash = (hash * 31 + id.charCodeAt(at)) | 0
  return hash & (LISTS - 1)
}

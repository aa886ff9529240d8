/** Lists among which the entries are spread: enough that those of a busy gateway hardly meet. */
const LISTS = 4096

/** What `ById` keeps: each entry knows the one behind it in its list. */
export interface Listed<T> {
  readonly id: string
  next: T | null
}

/**
 * Entries by id, which come and go with each call. A `Map` would replace its table every few dozen steps, and the old tables keep alive
 * what was in them until a full collection.
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

  /** For an id that is not there. */
  add(entry: T): void {
    const list = listOf(entry.id)
    entry.next = this.#first[list] ?? null
    this.#first[list] = entry
    this.#size++
  }

  /** Nothing happens to an entry that is not there. */
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

  /** All of them, in no order. */
  all(): T[] {
    const all: T[] = []
    for (const first of this.#first) for (let entry = first; entry !== null; entry = entry.next) all.push(entry)
    return all
  }
}

/** By the end of an id, which is random in the ids of calls. */
function listOf(id: string): number {
  const { length } = id
  let hash = 0
  for (let at = Math.max(0, length - 6); at < length; at++) hash = (hash * 31 + id.charCodeAt(at)) | 0
  return hash & (LISTS - 1)
}

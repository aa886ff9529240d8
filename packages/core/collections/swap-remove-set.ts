/** Member of a `SwapRemoveSet`: it stores its index there, which only the set writes. */
export interface Bagged {
  place: number
}

/** `place` of an object that is in no set. */
export const NOWHERE = -1

/**
 * An unordered set of current members, with constant-time removal. Each object is added once and removed once. A `Set` whose members come and go by
 * the thousand leaves a chain of old tables, which retain their members until the next full collection.
 */
export class SwapRemoveSet<T extends Bagged> implements Iterable<T> {
  readonly #members: T[] = []

  get size(): number {
    return this.#members.length
  }

  /** A member may be in one set at a time. */
  add(member: T): void {
    member.place = this.#members.push(member) - 1
  }

  delete(member: T): boolean {
    if (this.#members[member.place] !== member) return false
    const last = this.#members.pop()
    if (last !== undefined && last !== member) {
      this.#members[member.place] = last
      last.place = member.place
    }
    member.place = NOWHERE
    return true
  }

  /** Iterates over the members; they may be deleted meanwhile. */
  [Symbol.iterator](): IterableIterator<T> {
    return [...this.#members].values()
  }
}

/** What can be in a `SwapRemoveSet`: it remembers its own place there, and nobody else writes to it. */
export interface Bagged {
  place: number
}

/** The `place` of what is in no bag. */
export const NOWHERE = -1

/**
 * What is under way right now, without order: each member joins once and leaves once. A `Set` would do, but one whose members come
 * and go by the thousand leaves a chain of old tables that keep their members alive until the next full collection.
 */
export class SwapRemoveSet<T extends Bagged> implements Iterable<T> {
  readonly #members: T[] = []

  get size(): number {
    return this.#members.length
  }

  /** A member is in one bag at a time. */
  add(member: T): void {
    member.place = this.#members.push(member) - 1
  }

  /** Returns false, and does nothing, when it is not here any more. */
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

  /** Those that are here now: members may leave meanwhile. */
  [Symbol.iterator](): IterableIterator<T> {
    return [...this.#members].values()
  }
}

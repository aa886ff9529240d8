/** A named place in the snapshot: one feature writes it, any stage that is given the slot reads it. */
export interface Slot<T> {
  readonly name: string
  /** What stands there until the feature has published. */
  readonly initial: T
}

/** One immutable view of configuration, policy and registry. Each pass of a call sees exactly one. */
export interface Snapshot {
  /** Grows by one with every publication. */
  readonly revision: number
  get<T>(slot: Slot<T>): T
}

class FrozenSnapshot implements Snapshot {
  readonly revision: number
  readonly #values: ReadonlyMap<Slot<unknown>, unknown>

  constructor(revision: number, values: ReadonlyMap<Slot<unknown>, unknown>) {
    this.revision = revision
    this.#values = values
  }

  get<T>(slot: Slot<T>): T {
    // A slot is written only through `publish<T>`, so what stands there is a T.
    const value = this.#values.get(slot) as T | undefined
    return value === undefined ? slot.initial : value
  }

  with<T>(slot: Slot<T>, value: T): FrozenSnapshot {
    return new FrozenSnapshot(this.revision + 1, new Map(this.#values).set(slot, value))
  }
}

/** Holds the current snapshot. Publishing swaps one reference; calls under way keep the snapshot that they began with. */
export class Snapshots {
  #current = new FrozenSnapshot(0, new Map())
  readonly #listeners = new Set<(snapshot: Snapshot) => void>()

  get current(): Snapshot {
    return this.#current
  }

  publish<T>(slot: Slot<T>, value: T): void {
    this.#current = this.#current.with(slot, value)
    for (const listener of this.#listeners) listener(this.#current)
  }

  /** Calls back after each publication: long calls are judged again. The answer stops it. */
  onChange(listener: (snapshot: Snapshot) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}

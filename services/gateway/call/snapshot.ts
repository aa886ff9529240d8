/** A typed key of the snapshot. One feature publishes its value; stages that get the slot can read it. */
export interface Slot<T> {
  readonly name: string
  /** The value until the feature has published one. */
  readonly initial: T
}

/** An immutable view of configuration, policy and registry. Each pass of a call uses one. */
export interface Snapshot {
  /** Incremented by each publication. */
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
    // A slot is written only by `publish<T>`, so its value is a T.
    const value = this.#values.get(slot) as T | undefined
    return value === undefined ? slot.initial : value
  }

  with<T>(slot: Slot<T>, value: T): FrozenSnapshot {
    return new FrozenSnapshot(this.revision + 1, new Map(this.#values).set(slot, value))
  }
}

/** Holds the current snapshot. Publishing replaces it; calls in progress keep the snapshot with which they started. */
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

  /** Calls `listener` after each publication. Returns a function that removes the listener. */
  onChange(listener: (snapshot: Snapshot) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}

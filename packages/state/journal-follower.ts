import type { Journal, JournalEntry } from './journal.ts'

export interface JournalFollowerOptions<E> {
  readonly journal: Journal<E>
  /** Called with each entry, of this replica and of others, in order. */
  readonly apply: (entry: JournalEntry<E>) => void
  /** Called with each entry that the journal has at start, in order. Default: `apply`. */
  readonly replay?: (entry: JournalEntry<E> & { readonly at: number }) => void
  /** Called with the whole content of the journal when everything applied before is void. Absent: the journal cannot be followed any more then. */
  readonly replace?: (entries: readonly JournalEntry<E>[]) => void
  /** Called once, if the journal cannot be followed any more. */
  readonly onFault: (error: unknown) => void
}

/** The state of one key, as one event. */
export interface JournalSnapshot<E> {
  readonly key: string
  readonly version: number
  readonly event: E
}

/** Follows a journal on behalf of a projection of it, and compacts the journal to the state of the projection. */
export class JournalFollower<E> {
  readonly #options: JournalFollowerOptions<E>
  readonly #stop = new AbortController()
  #lastSeq = 0
  #events = 0
  /** True while the projection has not applied all entries up to `#lastSeq`. */
  #isReading = true
  #isCompacting = false

  constructor(options: JournalFollowerOptions<E>) {
    this.#options = options
  }

  /** Reads the journal from its beginning, then follows it. Rejects if it cannot be read. */
  async open(): Promise<void> {
    await this.read()
    this.follow()
  }

  /** Reads the journal from its beginning. Rejects if it cannot be read. */
  async read(): Promise<void> {
    const { journal, apply, replay = apply } = this.#options
    for await (const entry of journal.read(0)) {
      this.#count(entry)
      replay(entry)
    }
    this.#isReading = false
  }

  /** Follows the journal after `read` until `close`. */
  follow(): void {
    const { journal, apply, replace, onFault } = this.#options
    const each = (entry: JournalEntry<E>) => {
      this.#count(entry)
      apply(entry)
    }
    const all = (entries: readonly JournalEntry<E>[]) => {
      this.#lastSeq = entries.at(-1)?.seq ?? 0
      this.#events = entries.length
      this.#isReading = true
      replace?.(entries)
      this.#isReading = false
    }
    journal.follow(this.#lastSeq, each, this.#stop.signal, replace && all).catch(onFault)
  }

  close(): void {
    this.#stop.abort()
  }

  /** Number of events in the journal, including those that a compaction would remove. */
  get events(): number {
    return this.#events
  }

  /**
   * Replaces the applied entries of the journal by a snapshot of the projection. Does nothing before `read` is done and during another compaction.
   * Rejects if the journal fails.
   */
  async compact(snapshot: () => readonly JournalSnapshot<E>[]): Promise<void> {
    if (this.#isReading || this.#isCompacting) return
    this.#isCompacting = true
    try {
      const before = this.#events
      const entries = snapshot()
      await this.#options.journal.compact(this.#lastSeq, entries)
      this.#events += entries.length - before
    } finally {
      this.#isCompacting = false
    }
  }

  #count({ seq }: JournalEntry<E>): void {
    this.#lastSeq = Math.max(this.#lastSeq, seq)
    this.#events++
  }
}

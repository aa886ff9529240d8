/** An append-only list of events per key: the one form in which stateful features keep what must survive. */
export interface Journal<E> {
  /**
   * Durable when it resolves. `onlyIf` is the number of events that the key has so far: the once-only primitive. At a
   * conflict it resolves after followers have been given what came first.
   */
  append(key: string, events: readonly E[], onlyIf?: number): Promise<number | 'conflict'>
  read(after: number): AsyncIterable<JournalEntry<E> & { readonly at: number }>
  /**
   * Passes on every event after `after`, in order, until `signal` aborts. Where events were missed, or the journal was replaced by an
   * older one that an operator adopted, `replace` gets all that the journal holds now, in one step: what was passed on before no longer
   * counts. Without `replace` the promise rejects then, and `health` stays `unreachable`.
   */
  follow(
    after: number,
    apply: (entry: JournalEntry<E>) => void,
    signal: AbortSignal,
    replace?: (entries: readonly JournalEntry<E>[]) => void,
  ): Promise<void>
  compact(upTo: number, snapshot: readonly { key: string; version: number; event: E }[]): Promise<void>
  readonly health: 'ok' | 'poisoned' | 'unreachable'
}

/** A journal that its feature has open. */
export interface OpenJournal<E> extends Journal<E> {
  close(): Promise<void>
}

export interface JournalEntry<E> {
  readonly seq: number
  readonly key: string
  readonly version: number
  readonly event: E
}

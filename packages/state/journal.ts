/** An append-only list of events per key: the one form of durable state of features. */
export interface Journal<E> {
  /**
   * Durable when it resolves. `onlyIf` is the number of events that the key must have so far, which makes a write happen once. On a conflict it
   * resolves after followers received the earlier events.
   */
  append(key: string, events: readonly E[], onlyIf?: number): Promise<number | 'conflict'>
  read(after: number): AsyncIterable<JournalEntry<E> & { readonly at: number }>
  /**
   * Passes on every event after `after`, in order, until `signal` aborts. When events were missed, or an operator adopted an older journal,
   * `replace` is called once with the whole content of the journal: everything passed on before is void. Without `replace` the promise rejects then,
   * and `health` stays `unreachable`.
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

/** A journal opened by its feature. */
export interface OpenJournal<E> extends Journal<E> {
  close(): Promise<void>
}

export interface JournalEntry<E> {
  readonly seq: number
  readonly key: string
  readonly version: number
  readonly event: E
}

import { isObject } from '@plat/core'

/** Returns the error of a decoder for an event that this version does not know. `what` begins the message: `a taint event`. */
export function unknownEvent(what: string, event: unknown): Error {
  const kind = isObject(event) && 't' in event ? String(event.t) : 'none'
  return new Error(`${what} of kind ${JSON.stringify(kind)} is not known to this version`)
}

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

export interface OpenJournal<E> extends Journal<E> {
  close(): Promise<void>
}

export interface JournalEntry<E> {
  readonly seq: number
  readonly key: string
  readonly version: number
  readonly event: E
}

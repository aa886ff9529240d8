import type { Journal, JournalEntry } from './journal.ts'

export interface JournalFollower<E> {
  /** Called with each entry that the journal has, in order. Default: `apply`. */
  readonly replay?: (entry: JournalEntry<E> & { readonly at: number }) => void
  /** Called with each later entry, of this replica and of others. */
  readonly apply: (entry: JournalEntry<E>) => void
  /** Called with the whole content when everything passed on before is void. */
  readonly replace: (entries: readonly JournalEntry<E>[]) => void
  readonly signal: AbortSignal
  /** Called once, if the journal cannot be followed any more. */
  readonly onFault: (error: unknown) => void
}

/** Reads a journal from its beginning, then follows it until `signal` aborts. Rejects if it cannot be read. */
export async function followJournal<E>(journal: Journal<E>, follower: JournalFollower<E>): Promise<void> {
  const { apply, replay = apply, replace, signal, onFault } = follower
  let last = 0
  for await (const entry of journal.read(0)) {
    replay(entry)
    last = entry.seq
  }
  journal.follow(last, apply, signal, replace).catch(onFault)
}

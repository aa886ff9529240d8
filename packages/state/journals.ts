import type { Clock } from '@plat/core'
import { openFileJournal } from './file-journal.ts'
import type { OpenJournal } from './journal.ts'
import { createMemoryJournal } from './memory-journal.ts'

/** Which journal, and how its events are read. */
export interface JournalSpec<E> {
  /** Its name where several journals are in one place: `approvals`. */
  readonly name: string
  /** Its file where journals are files; empty: it lasts as long as the process. */
  readonly path: string
  /** Reads an event that was written before. Throws for one that this version does not know: the journal then refuses to open. */
  decode(event: unknown): E
}

/** Where features keep what must survive. */
export interface Journals {
  /** Other replicas write to them as well. */
  readonly shared: boolean
  /**
   * Resolves when followers here have every event that any replica made durable before the call; rejects when that cannot be
   * known. Null: no other replica writes.
   */
  readonly catchUp: (() => Promise<void>) | null
  /** Rejects when the journal cannot be read. */
  open<E>(spec: JournalSpec<E>): Promise<OpenJournal<E>>
}

/** Journals of one replica, each in a file of its own. */
export function fileJournals(clock: Clock): Journals {
  return {
    shared: false,
    catchUp: null,
    async open({ path, decode }) {
      return path === '' ? createMemoryJournal(() => clock.now()) : openFileJournal({ path, clock, decode })
    },
  }
}

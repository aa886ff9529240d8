import type { Clock, PoolCaller } from '@plat/core'
import { openFileJournal } from './file-journal.ts'
import type { OpenJournal } from './journal.ts'
import { createMemoryJournal } from './memory-journal.ts'

/** Identifies a journal and decodes its events. */
export interface JournalSpec<E> {
  /** Name of the journal where several share one place, such as `approvals`. */
  readonly name: string
  /** File of the journal, for file backends; empty: in memory. */
  readonly path: string
  /** Decodes a stored event. Throws on an unknown event: the journal then refuses to open. */
  decode(event: unknown): E
  /**
   * Returns the narrowest known caller of an append: agent and session, or one name. Absent: no agent can make it append much at a time.
   */
  callerOf?(key: string, events: readonly E[]): PoolCaller
}

/** Store of the durable state of features. */
export interface Journals {
  /** Other replicas write to the same journals. */
  readonly shared: boolean
  /**
   * Resolves when followers here have every event that any replica made durable before the call; rejects when that is unknown. Null when no other
   * replica writes.
   */
  readonly catchUp: (() => Promise<void>) | null
  /** Rejects when the journal cannot be read. */
  open<E>(spec: JournalSpec<E>): Promise<OpenJournal<E>>
}

/** Journals of a single replica, each in a separate file. */
export function fileJournals(clock: Clock): Journals {
  return {
    shared: false,
    catchUp: null,
    async open({ path, decode }) {
      return path === '' ? createMemoryJournal(() => clock.now()) : openFileJournal({ path, clock, decode })
    },
  }
}

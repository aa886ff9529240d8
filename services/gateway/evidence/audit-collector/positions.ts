import { type Clock, isObject, reasonOf } from '@plat/core'
import { NO_RECORD } from '@plat/ledger'
import type { Log } from '@plat/process'
import { JournalFollower, type OpenJournal, openFileJournal, unknownEvent } from '@plat/state'

/** Stored part of an edge's ledger. */
export interface Stored {
  readonly ledgerId: string
  /** Number of the last record, or -1. */
  readonly upTo: number
  readonly head: string
  /** Number of acknowledged bytes of the stored ledger. */
  readonly bytes: number
}

const NOTHING_STORED: Stored = { ledgerId: '', upTo: NO_RECORD.seq, head: NO_RECORD.hash, bytes: 0 }

/** Events after which the journal is compacted to the last one of each edge. */
const COMPACT_AFTER_EVENTS = 20_000

export class EdgePositions {
  readonly #journal: OpenJournal<Stored>
  readonly #follower: JournalFollower<Stored>
  readonly #last = new Map<string, { readonly version: number; readonly event: Stored }>()

  private constructor(journal: OpenJournal<Stored>, log: Log) {
    this.#journal = journal
    this.#follower = new JournalFollower({
      journal,
      apply: ({ key, version, event }) => void this.#last.set(key, { version, event }),
      onFault: (error) => log.error({ error: reasonOf(error) }, 'the journal of collected segments failed'),
    })
  }

  /** Rejects if the journal cannot be read or another process has locked it. */
  static async open({ path, clock, log }: { path: string; clock: Clock; log: Log }): Promise<EdgePositions> {
    const journal = await openFileJournal({ path, clock, decode: decodeStored })
    const positions = new EdgePositions(journal, log)
    try {
      await positions.#follower.open()
    } catch (error) {
      await journal.close()
      throw error
    }
    return positions
  }

  of(edge: string): Stored {
    return this.#last.get(edge)?.event ?? NOTHING_STORED
  }

  /** Resolves when durable. */
  async keep(edge: string, stored: Stored): Promise<void> {
    await this.#journal.append(edge, [stored])
    if (this.#follower.events >= COMPACT_AFTER_EVENTS) await this.#compact()
  }

  async close(): Promise<void> {
    this.#follower.close()
    await this.#journal.close()
  }

  #compact(): Promise<void> {
    return this.#follower.compact(() => Array.from(this.#last, ([key, last]) => ({ key, ...last })))
  }
}

function decodeStored(event: unknown): Stored {
  if (isObject(event)) {
    const { ledgerId, upTo, head, bytes } = event
    if (
      typeof ledgerId === 'string' &&
      typeof head === 'string' &&
      typeof upTo === 'number' &&
      typeof bytes === 'number'
    ) {
      return { ledgerId, upTo, head, bytes }
    }
  }
  throw unknownEvent('an event of collected segments', event)
}

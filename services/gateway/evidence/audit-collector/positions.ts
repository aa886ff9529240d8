import { type Clock, isObject, reasonOf } from '@plat/core'
import { NO_RECORD } from '@plat/ledger'
import type { Log } from '@plat/process'
import { type OpenJournal, openFileJournal } from '@plat/state'

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

/** Journal of the stored positions of all edges. */
export class EdgePositions {
  readonly #journal: OpenJournal<Stored>
  readonly #log: Log
  readonly #last = new Map<string, { readonly version: number; readonly event: Stored }>()
  readonly #stop = new AbortController()
  #seq = 0
  #events = 0

  private constructor(journal: OpenJournal<Stored>, log: Log) {
    this.#journal = journal
    this.#log = log
  }

  /** Rejects if the journal cannot be read or another process has locked it. */
  static async open({ path, clock, log }: { path: string; clock: Clock; log: Log }): Promise<EdgePositions> {
    const places = new EdgePositions(await openFileJournal({ path, clock, decode: decodeStored }), log)
    places.#follow()
    return places
  }

  of(edge: string): Stored {
    return this.#last.get(edge)?.event ?? NOTHING_STORED
  }

  /** Resolves when durable. */
  async keep(edge: string, stored: Stored): Promise<void> {
    await this.#journal.append(edge, [stored])
    if (this.#events >= COMPACT_AFTER_EVENTS) await this.#compact()
  }

  async close(): Promise<void> {
    this.#stop.abort()
    await this.#journal.close()
  }

  /** Applies existing entries before it returns. */
  #follow(): void {
    const following = this.#journal.follow(
      0,
      ({ seq, key, version, event }) => {
        this.#seq = seq
        this.#events++
        this.#last.set(key, { version, event })
      },
      this.#stop.signal,
    )
    following.catch((error: unknown) =>
      this.#log.error({ error: reasonOf(error) }, 'the journal of collected segments failed'),
    )
  }

  async #compact(): Promise<void> {
    this.#events = this.#last.size
    await this.#journal.compact(
      this.#seq,
      [...this.#last].map(([key, last]) => ({ key, ...last })),
    )
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
  throw new Error('holds an event that this version does not know')
}

import { type Clock, reasonOf } from '@plat/core'
import type { Journal, JournalEntry } from '../journal.ts'
import { type Database, textOf } from './database.ts'

/** Entries that are read at once. */
const PAGE = 1000
/** Journals that were not looked at for so long beyond their interval cannot be trusted any more, in milliseconds. */
const STALE_AFTER_MS = 5_000

/** A row of `entry`; numbers beyond 32 bits come as text. */
export interface EntryRow {
  readonly seq: string
  readonly key: string
  readonly version: string
  readonly at: string
  readonly event: string
}

/** Whoever follows one journal. */
export interface Follower {
  readonly journal: string
  /** The last event that it was told. */
  cursor: number
  /** Throws when the event cannot be understood. */
  tell(entry: JournalEntry<unknown>): void
  /** It has missed something, and is told nothing any more. */
  lost(error: Error): void
}

/** What a follower has missed is in no journal any more, or cannot be read. */
export class JournalLost extends Error {}

export interface FeedOptions {
  readonly database: Database
  readonly clock: Clock
  readonly pollMs: number
  warn(message: string): void
}

/**
 * Brings what replicas append to whoever follows, in the order of its numbers: looks each `pollMs`, and at once when the server says so.
 * Numbers follow one another without a gap, so that what is missing is noticed.
 */
export class Feed {
  readonly #options: FeedOptions
  readonly #followers = new Set<Follower>()
  readonly #stopPolling: () => void
  #running: Promise<void> | null = null
  #waiting: Promise<void> | null = null
  #lookedAt: number
  #health: Journal<unknown>['health'] = 'ok'
  #isLost = false

  constructor(options: FeedOptions) {
    this.#options = options
    this.#lookedAt = options.clock.monotonic()
    this.#stopPolling = options.clock.every(options.pollMs, () => this.#poll())
  }

  /** `unreachable`: what others wrote may not be known here. */
  get health(): Journal<unknown>['health'] {
    return this.#health
  }

  add(follower: Follower): void {
    this.#followers.add(follower)
  }

  remove(follower: Follower): void {
    this.#followers.delete(follower)
  }

  /** Whether somebody who follows this journal has not been told of event `seq`. */
  lacks(journal: string, seq: number): boolean {
    for (const follower of this.#followers) if (follower.journal === journal && follower.cursor < seq) return true
    return false
  }

  /** Tells what was just appended to those who know everything before it. */
  tell(journal: string, entries: readonly JournalEntry<unknown>[]): void {
    for (const follower of this.#followers) {
      if (follower.journal === journal) for (const entry of entries) this.#next(follower, entry.seq, () => entry)
    }
  }

  /** Resolves after a look that began no earlier than now. Rejects when the database does not answer. */
  pull(): Promise<void> {
    if (this.#waiting !== null) return this.#waiting
    if (this.#running === null) return this.#start()
    this.#waiting = this.#running
      .catch(() => {})
      .then(() => {
        this.#waiting = null
        return this.#start()
      })
    return this.#waiting
  }

  /** Ends when the look that is under way has. */
  async close(): Promise<void> {
    this.#stopPolling()
    await this.#running?.catch(() => {})
    this.#followers.clear()
  }

  #poll(): void {
    const { clock, pollMs, warn } = this.#options
    if (this.#health === 'ok' && clock.monotonic() - this.#lookedAt > pollMs + STALE_AFTER_MS) {
      this.#health = 'unreachable'
      warn('the state database was not read for too long: what other replicas wrote is not known here')
    }
    // A look that fails is made again, and the age of the last good one counts.
    if (this.#running === null) this.#start().catch(() => {})
  }

  #start(): Promise<void> {
    this.#running = this.#look().finally(() => {
      this.#running = null
    })
    return this.#running
  }

  async #look(): Promise<void> {
    const { database, clock, warn } = this.#options
    const began = clock.monotonic()
    const heads = await database.rows<{ name: string; seq: string }>(
      `SELECT name, seq FROM ${database.schema}.journal`,
      [],
    )
    const headOf = new Map(heads.map(({ name, seq }) => [name, Number(seq)]))
    for (const follower of this.#followers) {
      const head = headOf.get(follower.journal) ?? 0
      while (follower.cursor < head && this.#followers.has(follower)) await this.#page(follower, head)
    }
    this.#lookedAt = began
    if (this.#health === 'ok' || this.#isLost) return
    this.#health = 'ok'
    warn('the state database is read again')
  }

  async #page(follower: Follower, head: number): Promise<void> {
    const { database } = this.#options
    const rows = await database.rows<EntryRow>(
      `SELECT seq, key, version, at, event FROM ${database.schema}.entry
         WHERE journal = $1 AND seq > $2 AND part = 0 ORDER BY seq LIMIT ${PAGE}`,
      [follower.journal, follower.cursor],
    )
    const before = follower.cursor
    for (const row of rows) this.#next(follower, Number(row.seq), () => entryOf(row))
    if (follower.cursor === before && before < head)
      this.#lose(follower, `events after ${before} of journal ${follower.journal} are gone`)
  }

  /** Tells the event that comes next; older ones are known already, and for later ones something is missing. */
  #next(follower: Follower, seq: number, entry: () => JournalEntry<unknown>): void {
    if (seq !== follower.cursor + 1) return
    try {
      follower.tell(entry())
      follower.cursor = seq
    } catch (error) {
      this.#lose(follower, `event ${seq} of journal ${follower.journal} cannot be read: ${reasonOf(error)}`)
    }
  }

  #lose(follower: Follower, why: string): void {
    this.#isLost = true
    this.#health = 'unreachable'
    this.#followers.delete(follower)
    follower.lost(new JournalLost(`${why}: restart this replica`))
  }
}

export function entryOf({ seq, key, version, event }: EntryRow): JournalEntry<unknown> {
  return { seq: Number(seq), key: textOf(key), version: Number(version), event: JSON.parse(event) }
}

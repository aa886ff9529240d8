import { type Clock, reasonOf } from '@plat/core'
import type { Journal, JournalEntry } from '../journal.ts'
import { type Database, textOf } from './database.ts'
import { StateUnreachableError } from './pool.ts'

/** Number of entries read at once. */
const PAGE = 1000
/** A journal not polled for this long beyond the interval cannot be trusted, in milliseconds. */
const STALE_AFTER_MS = 5_000
/** Interval of the continuity check, in milliseconds. */
const CHECK_EVERY_MS = 1_000

/** A row of `entry`; bigints arrive as text. */
export interface EntryRow {
  readonly seq: string
  readonly key: string
  readonly version: string
  readonly at: string
  readonly event: string
  /** Marks of this event and of the previous one. */
  readonly mark: string
  readonly prev: string
}

/** A reader of one journal. */
export interface Follower {
  readonly journal: string
  /** Number of the last event passed on. */
  cursor: number
  /** Mark of that event; null when unknown. */
  mark: string | null
  /** It cannot continue from its cursor and must reread the journal. */
  isStale: boolean
  /** Throws when the event is unknown. */
  deliver(entry: JournalEntry<unknown>): void
  /** Replaces everything passed on by the current content of the journal. Rejects when it cannot be read or decoded. */
  reread(): Promise<void>
  /** Called when it cannot follow any more. */
  lost(error: Error): void
}

/** This gateway does not know an event of the journal. */
export class JournalLostError extends Error {}

export interface FeedOptions {
  readonly database: Database
  readonly clock: Clock
  readonly pollMs: number
  warn(message: string): void
}

/**
 * Passes appended events to followers, in order: polls every `pollMs`, and at once when the server notifies. Numbers have no gaps and each event
 * names the mark of the previous one, so a missing or replaced event is detected. A follower that missed something rereads its journal; a database
 * that lost something is reported to `Continuity`.
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
  #checkedAt = Number.NEGATIVE_INFINITY
  #failedSince: number | null = null

  constructor(options: FeedOptions) {
    this.#options = options
    this.#lookedAt = options.clock.monotonic()
    this.#stopPolling = options.clock.every(options.pollMs, () => this.#poll())
  }

  /** `unreachable`: events of other gateways may be missing here. */
  get health(): Journal<unknown>['health'] {
    return this.#health
  }

  /** Milliseconds since the database stopped responding; 0 while it responds. */
  get awayMs(): number {
    return this.#failedSince === null ? 0 : this.#options.clock.monotonic() - this.#failedSince
  }

  /** Called when the database lacks data that was seen. */
  suspend(): void {
    this.#health = 'unreachable'
  }

  /** Rereads everything after an operator adopted the database as it is. */
  restart(): void {
    this.#health = 'unreachable'
    for (const follower of this.#followers) follower.isStale = true
  }

  add(follower: Follower): void {
    this.#followers.add(follower)
  }

  remove(follower: Follower): void {
    this.#followers.delete(follower)
  }

  /** Returns the newest event of a journal that followers here have, with its mark; null without followers that know one. */
  known(journal: string): { readonly seq: number; readonly mark: string | null } | null {
    let known: { readonly seq: number; readonly mark: string | null } | null = null
    for (const { isStale, journal: followed, cursor: seq, mark } of this.#followers)
      if (followed === journal && !isStale && seq > (known?.seq ?? -1)) known = { seq, mark }
    return known
  }

  /** Returns whether a follower of this journal has not received event `seq`. */
  lacks(journal: string, seq: number): boolean {
    for (const follower of this.#followers)
      if (follower.journal === journal && (follower.isStale || follower.cursor < seq)) return true
    return false
  }

  /** Passes appended entries to followers that know everything before them. `marks`: that of the previous event, and of each entry. */
  deliver(journal: string, entries: readonly JournalEntry<unknown>[], marks: readonly string[]): void {
    for (const follower of this.#followers) {
      if (follower.journal !== journal) continue
      for (const [at, entry] of entries.entries()) {
        const [prev, mark] = [marks[at] ?? '', marks[at + 1] ?? '']
        this.#next(follower, { seq: entry.seq, prev, mark }, () => entry)
      }
    }
  }

  /** Resolves after a poll that started no earlier than now. Rejects when the database does not respond. */
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

  /** Resolves when the current poll is done. */
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
    // A failed poll is repeated; the age of the last successful one counts.
    if (this.#running === null) this.#start().catch(() => {})
  }

  async #check(): Promise<void> {
    const { database, clock } = this.#options
    const isDue = database.continuity.lost !== null || clock.monotonic() - this.#checkedAt >= CHECK_EVERY_MS
    if (!isDue) return
    this.#checkedAt = clock.monotonic()
    await database.checkOrigin()
  }

  #start(): Promise<void> {
    this.#running = this.#look()
      .then(() => {
        this.#failedSince = null
      })
      .catch((error: unknown) => {
        this.#failedSince ??= this.#options.clock.monotonic()
        throw error
      })
      .finally(() => {
        this.#running = null
      })
    return this.#running
  }

  async #look(): Promise<void> {
    const { database, clock, warn } = this.#options
    const began = clock.monotonic()
    await this.#check()
    // Events appended here during the query must not count against its result.
    const places = [...this.#followers].map((follower) => ({ follower, cursor: follower.cursor, mark: follower.mark }))
    const heads = await database.rows<{ name: string; seq: string; mark: string }>(
      `SELECT name, seq, mark FROM ${database.schema}.journal`,
      [],
    )
    const headOf = new Map(heads.map(({ name, seq, mark }) => [name, { seq: Number(seq), mark }]))
    for (const { follower, cursor, mark } of places) {
      const head = headOf.get(follower.journal) ?? { seq: 0, mark: '' }
      const isOther = head.seq === cursor && mark !== null && head.mark !== mark
      if (!follower.isStale && (head.seq < cursor || isOther)) await this.loseAfter(follower.journal, follower.cursor)
      await this.#catchUp(follower, head.seq)
    }
    this.#lookedAt = began
    const isStale = [...this.#followers].some((follower) => follower.isStale)
    if (this.#health === 'ok' || this.#isLost || isStale || database.continuity.lost !== null) return
    this.#health = 'ok'
    warn('the state database is read again')
  }

  async #catchUp(follower: Follower, head: number): Promise<void> {
    while (this.#followers.has(follower)) {
      if (follower.isStale) await this.#reread(follower)
      else if (follower.cursor < head) await this.#page(follower)
      else return
    }
  }

  async #reread(follower: Follower): Promise<void> {
    try {
      await follower.reread()
      follower.isStale = false
    } catch (error) {
      if (error instanceof StateUnreachableError) throw error
      this.#lose(follower, `journal ${follower.journal} cannot be read: ${reasonOf(error)}`)
    }
  }

  async #page(follower: Follower): Promise<void> {
    const { database, warn } = this.#options
    // Events appended here meanwhile move the cursor past the result.
    const before = follower.cursor
    const rows = await database.rows<EntryRow>(
      `SELECT seq, key, version, at, event, prev, mark FROM ${database.schema}.entry
         WHERE journal = $1 AND seq > $2 AND part = 0 ORDER BY seq LIMIT ${PAGE}`,
      [follower.journal, before],
    )
    for (const row of rows) {
      // An adoption since the read makes the follower stale: the rows are then void.
      const isNext = !follower.isStale && Number(row.seq) === follower.cursor + 1
      if (isNext && follower.mark !== null && row.prev !== follower.mark)
        await this.loseAfter(follower.journal, follower.cursor)
      this.#next(follower, { ...row, seq: Number(row.seq) }, () => entryOf(row))
    }
    if (follower.isStale || follower.cursor > before || !this.#followers.has(follower)) return
    warn(`events after ${before} of journal ${follower.journal} are covered by a snapshot: it is read anew`)
    this.#health = 'unreachable'
    follower.isStale = true
  }

  /** Passes on the next event; older ones are known already, and before later ones one is missing. */
  #next(
    follower: Follower,
    { seq, prev, mark }: { readonly seq: number; readonly prev: string; readonly mark: string },
    entry: () => JournalEntry<unknown>,
  ): void {
    if (follower.isStale || seq !== follower.cursor + 1) return
    // The next poll finds out why.
    if (follower.mark !== null && follower.mark !== prev) return
    try {
      follower.deliver(entry())
      follower.cursor = seq
      follower.mark = mark
    } catch (error) {
      this.#lose(follower, `event ${seq} of journal ${follower.journal} cannot be read: ${reasonOf(error)}`)
    }
  }

  /** The database does not continue an event that was seen. Always rejects. */
  async loseAfter(journal: string, seq: number): Promise<never> {
    const why = `the state database has gone back in time: journal ${journal} does not continue event ${seq}`
    await this.#options.database.lose(why)
    throw new StateUnreachableError(why, { stage: 'unknown' })
  }

  #lose(follower: Follower, why: string): void {
    this.#isLost = true
    this.#health = 'unreachable'
    this.#followers.delete(follower)
    follower.lost(new JournalLostError(`${why}: update or restart this replica`))
  }
}

export function entryOf({
  seq,
  key,
  version,
  event,
}: Pick<EntryRow, 'seq' | 'key' | 'version' | 'event'>): JournalEntry<unknown> {
  return { seq: Number(seq), key: textOf(key), version: Number(version), event: JSON.parse(event) }
}

import type { Clock, Ids } from '@plat/core'
import type { Journal, JournalEntry, OpenJournal } from '../journal.ts'
import type { JournalSpec } from '../journals.ts'
import { type Database, EVEN_LOST, storedText } from './database.ts'
import { type EntryRow, entryOf, type Feed, type Follower } from './feed.ts'

/** Number of entries read at once. */
const PAGE = 5000

export interface JournalParts {
  readonly database: Database
  readonly feed: Feed
  readonly clock: Clock
  readonly ids: Ids
}

/** Opens a journal that every replica appends to and follows. */
export async function openPostgresJournal<E>(spec: JournalSpec<E>, parts: JournalParts): Promise<OpenJournal<E>> {
  const { schema } = parts.database
  await parts.database.again(
    `INSERT INTO ${schema}.journal (name) VALUES ($1) ON CONFLICT DO NOTHING`,
    [spec.name],
    EVEN_LOST,
  )
  return new PostgresJournal(spec, parts)
}

interface Appended {
  readonly head: string
  readonly first: string | null
  readonly version: string | null
  /** Mark of the previous event. */
  readonly prev: string
  /** Transaction of the append. */
  readonly xid: string
}

/** Returns whether the journal contains the event that was known when the append was sent. */
function continues(
  { head, first, prev }: Appended,
  known: { readonly seq: number; readonly mark: string | null },
): boolean {
  if (Number(head) < known.seq) return false
  if (first === null) return true
  const isNext = Number(first) === known.seq + 1
  return Number(first) > known.seq && (!isNext || known.mark === null || prev === known.mark)
}

class PostgresJournal<E> implements OpenJournal<E> {
  readonly #spec: JournalSpec<E>
  readonly #parts: JournalParts
  /** Last event covered by a completed read, including events replaced by a snapshot. */
  #readTo = 0
  #readMark = ''

  constructor(spec: JournalSpec<E>, parts: JournalParts) {
    this.#spec = spec
    this.#parts = parts
  }

  get health(): Journal<E>['health'] {
    return this.#parts.feed.health
  }

  /** Resolves after followers here received the event, or the earlier events on a conflict. */
  async append(key: string, events: readonly E[], onlyIf?: number): Promise<number | 'conflict'> {
    const { database, feed, clock, ids } = this.#parts
    const { name } = this.#spec
    const texts = events.map((event) => JSON.stringify(event))
    const attempt = ids.uuid()
    const known = feed.known(name)
    const { epoch } = database.continuity.mark
    const [answer] = await database.append<Appended>(
      name,
      `SELECT *, pg_current_xact_id()::text AS xid FROM ${database.schema}.append($1, $2, $3, $4, $5, $6)`,
      [name, storedText(key), texts, onlyIf ?? null, clock.now(), attempt],
    )
    database.continuity.sawTransaction(answer?.xid)
    // After an adoption followers start over.
    const isSame = database.continuity.mark.epoch === epoch
    if (known !== null && answer !== undefined && isSame && !continues(answer, known))
      await feed.loseAfter(name, known.seq)
    if (answer === undefined || answer.first === null || answer.version === null) {
      await this.#follow(Number(answer?.head))
      return 'conflict'
    }
    const first = Number(answer.first)
    const version = Number(answer.version)
    const before = version - events.length
    feed.deliver(
      name,
      texts.map((text, at) => ({ seq: first + at, key, version: before + at + 1, event: JSON.parse(text) })),
      [answer.prev, ...texts.map((_, at) => `${attempt}.${at + 1}`)],
    )
    await this.#follow(first + events.length - 1)
    return version
  }

  async *read(after: number): AsyncGenerator<JournalEntry<E> & { readonly at: number }> {
    const { rows, head, mark } = await this.#standing(after)
    for (const row of rows) yield { ...this.#entryOf(row), at: Number(row.at) }
    this.#readTo = head
    this.#readMark = mark
  }

  async follow(
    after: number,
    apply: (entry: JournalEntry<E>) => void,
    signal: AbortSignal,
    replace?: (entries: readonly JournalEntry<E>[]) => void,
  ): Promise<void> {
    if (signal.aborted) return
    const { feed } = this.#parts
    const { decode, name } = this.#spec
    const ended = Promise.withResolvers<void>()
    // The promise may settle in the first poll, before it is awaited.
    ended.promise.catch(() => {})
    const readTo = this.#readTo
    const follower: Follower = {
      journal: name,
      cursor: Math.max(after, readTo),
      mark: after > readTo ? null : this.#readMark,
      isStale: false,
      deliver: (entry) => apply({ ...entry, event: decode(entry.event) }),
      reread: async () => {
        if (replace === undefined) throw new Error('events were missed')
        const { rows, head, mark } = await this.#standing(0)
        replace(rows.map((row) => this.#entryOf(row)))
        follower.cursor = head
        follower.mark = mark
      },
      lost: ended.reject,
    }
    signal.addEventListener('abort', () => ended.resolve(), { once: true })
    // A snapshot may replace events that are no longer read one by one, and may be empty.
    if (this.#readTo === 0 && (await this.#covered()) > after) {
      const { rows, head, mark } = await this.#standing(after)
      for (const row of rows) apply(this.#entryOf(row))
      follower.cursor = head
      follower.mark = mark
    }
    feed.add(follower)
    try {
      // A failed read is repeated by the feed.
      await feed.pull().catch(() => {})
      await ended.promise
    } finally {
      feed.remove(follower)
    }
  }

  async compact(upTo: number, snapshot: readonly { key: string; version: number; event: E }[]): Promise<void> {
    const { database, clock } = this.#parts
    const { name } = this.#spec
    const [answer] = await database.long('READ WRITE', (ask) =>
      ask<{ head: string }>(`SELECT ${database.schema}.compact($1, $2, $3, $4, $5, $6) AS head`, [
        name,
        upTo,
        clock.now(),
        snapshot.map(({ key }) => storedText(key)),
        snapshot.map(({ version }) => version),
        snapshot.map(({ event }) => JSON.stringify(event)),
      ]),
    )
    const head = Number(answer?.head)
    if (upTo > head) throw new Error(`journal ${name} ends at event ${head}, before ${upTo}`)
  }

  async close(): Promise<void> {}

  /** Resolves when followers here know event `seq`. */
  async #follow(seq: number): Promise<void> {
    const { feed } = this.#parts
    if (feed.lacks(this.#spec.name, seq)) await feed.pull()
  }

  async #covered(): Promise<number> {
    const { database } = this.#parts
    const [row] = await database.rows<{ covered: string }>(
      `SELECT covered FROM ${database.schema}.journal WHERE name = $1`,
      [this.#spec.name],
      EVEN_LOST,
    )
    return Number(row?.covered)
  }

  /** Reads the current entries after event `after` and the number of the last event, in one snapshot. */
  #standing(after: number): Promise<Standing> {
    const { database } = this.#parts
    const { name } = this.#spec
    return database.long(
      'READ ONLY',
      async (ask) => {
        const [journal] = await ask<{ seq: string; mark: string }>(
          `SELECT seq, mark FROM ${database.schema}.journal WHERE name = $1`,
          [name],
        )
        const rows: PlacedRow[] = []
        for (let last: PlacedRow | undefined, page = PAGE; page === PAGE; last = rows.at(-1)) {
          const found = await ask<PlacedRow>(
            `SELECT seq, part, key, version, at, event FROM ${database.schema}.entry
             WHERE journal = $1 AND covered_at IS NULL AND seq > $2 AND (seq, part) > ($3, $4)
             ORDER BY seq, part LIMIT ${PAGE}`,
            [name, after, last?.seq ?? 0, last?.part ?? 0],
          )
          for (const row of found) rows.push(row)
          page = found.length
        }
        return { rows, head: Number(journal?.seq ?? 0), mark: journal?.mark ?? '' }
      },
      EVEN_LOST,
    )
  }

  #entryOf(row: PlacedRow): JournalEntry<E> {
    const entry = entryOf(row)
    return { ...entry, event: this.#spec.decode(entry.event) }
  }
}

interface PlacedRow extends Omit<EntryRow, 'prev' | 'mark'> {
  readonly part: number
}

interface Standing {
  readonly rows: readonly PlacedRow[]
  readonly head: number
  readonly mark: string
}

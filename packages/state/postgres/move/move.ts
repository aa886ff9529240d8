import { createHash } from 'node:crypto'
import { reasonOf } from '@plat/core'
import type { PoolClient } from 'pg'
import type { StoredJournal } from '../../journal-file.ts'
import { windowEnd } from '../../limits/window.ts'
import { storedText } from '../database.ts'
import { openPool } from '../pool.ts'
import { migrate } from '../schema.ts'
import { stateTables } from '../tables/tables.ts'

/** Number of rows that one statement writes or reads. */
const PAGE = 2_000
/** Timeout of a statement, in milliseconds. */
const STATEMENT_MS = 60_000

/** State of one gateway, to be moved. */
export interface MovableState {
  readonly journals: readonly (StoredJournal & { readonly name: string })[]
  /** Spent amounts of windows. */
  readonly counters: readonly {
    readonly key: string
    readonly window: string
    readonly spent: number
    readonly usedAt: number
  }[]
  readonly secrets: readonly { readonly name: string; readonly value: string }[]
}

/** `moved`: written and read back; `same`: it was there already, with the same content; `none`: there is nothing to move. */
export type MoveOutcome = 'moved' | 'same' | 'none'

export interface MovedKind {
  readonly kind: string
  readonly entries: number
  readonly keys: number
  readonly outcome: MoveOutcome
}

export interface MoveOptions {
  readonly dsn: string
  readonly schema: string
  readonly state: MovableState
  /** IANA zone of day and month windows. */
  readonly zone: string
  /** Compares only: nothing is created or written. */
  readonly isDry: boolean
  /** Called before each step. */
  readonly onStep?: (step: string) => void
}

/** The target cannot be used; the message names what and the next step. */
export class MoveError extends Error {}

/**
 * Moves state into the database, in one transaction: a move that is interrupted has moved nothing, or everything. Rejects with MoveError if gateways
 * use the database, if it has other state of some kind, or if what was written is not what was read.
 */
export async function moveState(options: MoveOptions): Promise<MovedKind[]> {
  const { dsn, schema, isDry } = options
  const pool = await openPool({ dsn, maxConnections: 1, warn() {} })
  try {
    if (!isDry) await migrate(pool, stateTables(schema))
    const client = await pool.connect()
    try {
      const moved = await new Move(client, options).run()
      client.release()
      return moved
    } catch (error) {
      // Destroys the connection with its transaction.
      client.release(true)
      throw error
    }
  } catch (error) {
    if (error instanceof MoveError) throw error
    throw new MoveError(`nothing was moved, or it is not known: ${reasonOf(error)}; run the same command again`, {
      cause: error,
    })
  } finally {
    await pool.end()
  }
}

class Move {
  readonly #client: PoolClient
  readonly #options: MoveOptions
  readonly #s: string

  constructor(client: PoolClient, options: MoveOptions) {
    this.#client = client
    this.#options = options
    this.#s = `"${options.schema}"`
  }

  async run(): Promise<MovedKind[]> {
    const { state, isDry } = this.#options
    this.#step('begin')
    await this.#rows('BEGIN')
    await this.#rows(`SET LOCAL statement_timeout = ${STATEMENT_MS}`)
    const hasTables = await this.#hasTables()
    if (hasTables) await this.#refuseInUse()
    const kinds = [
      ...state.journals.map((journal) => ({
        kind: journal.name,
        entries: journal.events.length,
        keys: new Set(journal.events.map(({ key }) => key)).size,
        compare: () => this.#compareJournal(journal),
        write: () => this.#writeJournal(journal),
      })),
      {
        kind: 'counters',
        entries: state.counters.length,
        keys: new Set(state.counters.map(({ key }) => key)).size,
        compare: () => this.#compareCounters(),
        write: () => this.#writeCounters(),
      },
      ...state.secrets.map((secret) => ({
        kind: secret.name,
        entries: 1,
        keys: 1,
        compare: () => this.#compareSecret(secret),
        write: () => this.#writeSecret(secret),
      })),
    ]
    const moved: MovedKind[] = []
    const others: string[] = []
    // Nothing is written before everything is compared.
    const found = new Map<string, Comparison>()
    for (const { kind, entries, compare } of kinds) {
      this.#step(`compare ${kind}`)
      const comparison = entries === 0 || !hasTables ? 'absent' : await compare()
      found.set(kind, comparison)
      if (comparison === 'other') others.push(kind)
    }
    if (others.length > 0) {
      const names = others.join(', ')
      throw new MoveError(`the database has other state already: ${names}; name an empty database or schema`)
    }
    for (const { kind, entries, keys, compare, write } of kinds) {
      const isMoved = entries > 0 && found.get(kind) === 'absent'
      if (isMoved && !isDry) {
        this.#step(`write ${kind}`)
        await write()
        this.#step(`verify ${kind}`)
        if ((await compare()) !== 'same') throw new MoveError(`${kind}: what was written is not what was read`)
      }
      moved.push({ kind, entries, keys, outcome: entries === 0 ? 'none' : isMoved ? 'moved' : 'same' })
    }
    this.#step('commit')
    await this.#rows(isDry ? 'ROLLBACK' : 'COMMIT')
    this.#step('end')
    return moved
  }

  async #hasTables(): Promise<boolean> {
    const [row] = await this.#rows<{ found: boolean }>('SELECT to_regclass($1) IS NOT NULL AS found', [
      `${this.#s}.entry`,
    ])
    return row?.found === true
  }

  /** A gateway that runs would not read what is written beneath it. */
  async #refuseInUse(): Promise<void> {
    const live = await this.#rows(`SELECT 1 FROM ${this.#s}.replica WHERE until > clock_timestamp() LIMIT 1`)
    if (live.length > 0)
      throw new MoveError('gateways use the database: stop them, and move before the first one starts')
    const [origin] = await this.#rows<{ lost: string | null }>(`SELECT lost FROM ${this.#s}.origin`)
    if (origin !== undefined && origin.lost !== null)
      throw new MoveError('the database lost data: see "plat state adopt"')
  }

  async #compareJournal({ name, events }: MovableState['journals'][0]): Promise<Comparison> {
    const [journal] = await this.#rows<{ seq: string }>(`SELECT seq FROM ${this.#s}.journal WHERE name = $1`, [name])
    if (journal === undefined || journal.seq === '0') return 'absent'
    const digest = createHash('sha256')
    let count = 0
    let last = { seq: '0', part: 0 }
    for (let page = PAGE; page === PAGE; ) {
      const rows = await this.#rows<{
        seq: string
        part: number
        key: string
        version: string
        at: string
        event: string
      }>(
        `SELECT seq, part, key, version, at, event FROM ${this.#s}.entry
           WHERE journal = $1 AND covered_at IS NULL AND (seq, part) > ($2, $3) ORDER BY seq, part LIMIT ${PAGE}`,
        [name, last.seq, last.part],
      )
      for (const { key, version, at, event } of rows) digest.update(lineOf(key, Number(version), Number(at), event))
      count += rows.length
      page = rows.length
      last = rows.at(-1) ?? last
    }
    const source = createHash('sha256')
    for (const { key, version, at, event } of events)
      source.update(lineOf(storedText(key), version, at, JSON.stringify(event)))
    return count === events.length && digest.digest('hex') === source.digest('hex') ? 'same' : 'other'
  }

  /** As a snapshot: every event has the number of the last one, and keeps its version and time. */
  async #writeJournal({ name, seq, events }: MovableState['journals'][0]): Promise<void> {
    const last = Math.max(seq, 1)
    const insert = `INSERT INTO ${this.#s}.journal (name) VALUES ($1) ON CONFLICT DO NOTHING`
    await this.#rows(insert, [name])
    const update = `UPDATE ${this.#s}.journal SET seq = $2, covered = $2, mark = $3 WHERE name = $1 AND seq = 0 RETURNING 1`
    const updated = await this.#rows(update, [name, last, `moved.${last}.${events.length}`])
    if (updated.length !== 1) throw new MoveError(`${name}: it was written meanwhile`)
    for (let from = 0; from < events.length; from += PAGE) {
      const page = events.slice(from, from + PAGE)
      await this.#rows(
        `INSERT INTO ${this.#s}.entry (journal, seq, part, key, version, at, event)
           SELECT $1, $2, $3 + n, key, version, at, event
             FROM unnest($4::text[], $5::bigint[], $6::bigint[], $7::text[]) WITH ORDINALITY AS u(key, version, at, event, n)`,
        [
          name,
          last,
          from,
          page.map(({ key }) => storedText(key)),
          page.map(({ version }) => version),
          page.map(({ at }) => at),
          page.map(({ event }) => JSON.stringify(event)),
        ],
      )
    }
  }

  /** Other windows may have ended since an earlier move: what is to be moved must be there, with the same amounts. */
  async #compareCounters(): Promise<Comparison> {
    const rows = await this.#rows<{ key: string; win: string; spent: string; held: string }>(
      `SELECT key, win, spent, held FROM ${this.#s}.counter WHERE spent > 0 OR held > 0`,
    )
    if (rows.length === 0) return 'absent'
    const there = new Map(rows.map(({ key, win, spent, held }) => [`${key} ${win}`, `${spent} ${held}`]))
    const isSame = this.#options.state.counters.every(
      ({ key, window, spent }) => there.get(`${storedText(key)} ${window}`) === `${spent} 0`,
    )
    return isSame ? 'same' : 'other'
  }

  async #writeCounters(): Promise<void> {
    const { state, zone } = this.#options
    for (let from = 0; from < state.counters.length; from += PAGE) {
      const page = state.counters.slice(from, from + PAGE)
      await this.#rows(
        `INSERT INTO ${this.#s}.counter (key, win, spent, ends_at, used_at)
           SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[])
           ON CONFLICT (key, win) DO UPDATE SET spent = EXCLUDED.spent, used_at = EXCLUDED.used_at`,
        [
          page.map(({ key }) => storedText(key)),
          page.map(({ window }) => window),
          page.map(({ spent }) => spent),
          page.map(({ window }) => windowEnd(window, zone)),
          page.map(({ usedAt }) => Math.floor(usedAt)),
        ],
      )
    }
  }

  async #compareSecret({ name, value }: MovableState['secrets'][0]): Promise<Comparison> {
    const [row] = await this.#rows<{ value: string }>(`SELECT value FROM ${this.#s}.secret WHERE name = $1`, [name])
    return row === undefined ? 'absent' : row.value === value ? 'same' : 'other'
  }

  async #writeSecret({ name, value }: MovableState['secrets'][0]): Promise<void> {
    await this.#rows(`INSERT INTO ${this.#s}.secret (name, value) VALUES ($1, $2)`, [name, value])
  }

  #step(step: string): void {
    this.#options.onStep?.(step)
  }

  async #rows<R extends object>(text: string, values: readonly unknown[] = []): Promise<R[]> {
    const query = { text, values: [...values], query_timeout: STATEMENT_MS }
    return (await this.#client.query<R>(query)).rows
  }
}

type Comparison = 'absent' | 'same' | 'other'

function lineOf(key: string, version: number, at: number, event: string): string {
  return `${JSON.stringify([key, version, at, event])}\n`
}

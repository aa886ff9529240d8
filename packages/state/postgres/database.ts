import { reasonOf } from '@plat/core'
import type { Pool, PoolClient, QueryResultRow } from 'pg'
import type { Continuity, OriginRow } from './continuity.ts'
import type { Counted } from './counting/operation.ts'
import {
  isBroken,
  isLockTimeout,
  isPermanent,
  isRefused,
  openPool,
  type PoolOptions,
  StateUnreachableError,
} from './pool.ts'
import { migrate } from './schema.ts'
import { lockedCounter } from './tables/count.ts'
import { stateTables } from './tables/tables.ts'

/** Requests of one replica that wait for a connection at most; one more is refused at once. */
const MAX_WAITING = 1000
/** How long a statement may take that reads or writes a whole journal, in milliseconds. */
const WHOLE_MS = 60_000
/** How long we wait for a batch of counting, in milliseconds: its calls wait for it. */
const COUNT_MS = 3_000

/** For what a gateway needs to start: it starts with a database that lost something as well, and denies every call then. */
export const EVEN_LOST = 'even lost'
type EvenLost = typeof EVEN_LOST

/** Asks within a transaction. */
export type RunQuery = <R extends QueryResultRow>(statement: string, values: readonly unknown[]) => Promise<R[]>

export interface DatabaseOptions extends PoolOptions {
  /** Made when it is missing. */
  readonly schema: string
  readonly continuity: Continuity
}

/** The gateway's schema. What cannot be answered rejects with `StateUnreachableError`; the next question tries again. */
export class Database {
  /** Before each name: `"plat"`. */
  readonly schema: string
  readonly continuity: Continuity
  readonly #pool: Pool
  /** Connections on which it was checked, when they were new, that the database has lost nothing. */
  readonly #checked = new WeakSet<PoolClient>()

  private constructor(pool: Pool, { schema, continuity }: DatabaseOptions) {
    this.#pool = pool
    this.schema = `"${schema}"`
    this.continuity = continuity
  }

  /** Rejects when the server cannot be reached, refuses, or has a schema of a later release: nothing is decided on half a state. */
  static async open(options: DatabaseOptions): Promise<Database> {
    const pool = await openPool(options)
    try {
      await migrate(pool, stateTables(options.schema))
      const database = new Database(pool, options)
      await database.checkOrigin()
      return database
    } catch (error) {
      await pool.end()
      const what = isPermanent(error) ? 'the state database refuses' : 'the state database cannot be reached'
      throw new Error(`${what}: ${reasonOf(error)}`)
    }
  }

  /** Compares the database with what was seen of it, also while it counts as lost. Rejects when it cannot be reached. */
  async checkOrigin(): Promise<void> {
    const client = await this.#pooled()
    await this.#check(client)
    client.release()
  }

  /** Goes on with the database as it is, in every gateway. */
  async adopt(): Promise<void> {
    const { origin, mark } = this.continuity
    const client = await this.#pooled()
    try {
      await client.query(`SELECT ${this.schema}.adopt($1, $2)`, [origin, mark.epoch])
      client.release()
    } catch (error) {
      client.release(true)
      throw unreachable(error)
    }
    await this.checkOrigin()
  }

  /** The database lacks something that it had acknowledged. Other gateways find that here as well. */
  async lose(why: string): Promise<void> {
    this.continuity.lose(why)
    await this.checkOrigin()
  }

  rows<R extends QueryResultRow>(statement: string, values: readonly unknown[], even?: EvenLost): Promise<R[]> {
    return this.#query<R>({ text: statement, values: [...values] }, even)
  }

  /** For what happens once however often it is sent: sent once more when the connection broke before the answer. */
  again<R extends QueryResultRow>(statement: string, values: readonly unknown[], even?: EvenLost): Promise<R[]> {
    return this.#twice<R>({ text: statement, values: [...values] }, even)
  }

  /** A batch of counting: see `countFunction`. */
  async count(batch: CountBatch): Promise<CountResult> {
    const text = `SELECT ${this.schema}.count($1, $2, $3, $4, $5, $6::jsonb) AS result`
    const { owner, deadline, keys, windows, ends, operations } = batch
    const values = [owner, deadline, keys, windows, ends, JSON.stringify(operations)]
    const [row] = await this.#twice<{ result: CountResult }>({ text, values, query_timeout: COUNT_MS })
    return row?.result ?? {}
  }

  /** The first counter of a batch that another transaction has locked now, by its place; null: none, or it cannot be known. */
  async lockedCounter({ keys, windows }: CountBatch): Promise<number | null> {
    const text = lockedCounter(this.schema)
    const query = this.#query<{ place: number | null }>({ text, values: [keys, windows], query_timeout: COUNT_MS })
    const [row] = await query.catch(() => [])
    return row?.place ?? null
  }

  async #twice<R extends QueryResultRow>(query: Query, even?: EvenLost): Promise<R[]> {
    try {
      return await this.#query<R>(query, even)
    } catch (error) {
      if (!(error instanceof StateUnreachableError) || error.stage === 'connect' || !isBroken(error.cause)) throw error
      // A second attempt that could not be sent says nothing of the first.
      return this.#query<R>(query, even).catch((second: unknown) => {
        throw second instanceof StateUnreachableError && second.stage === 'connect' ? error : second
      })
    }
  }

  async #query<R extends QueryResultRow>(query: Query, even?: EvenLost): Promise<R[]> {
    const client = await this.#trusted(even)
    try {
      const { rows } = await client.query<R>(query)
      client.release()
      return rows
    } catch (error) {
      client.release(true)
      throw unreachable(error)
    }
  }

  /** A connection to a database that has lost nothing. */
  async #trusted(even?: EvenLost): Promise<PoolClient> {
    const client = await this.#pooled()
    if (!this.#checked.has(client)) await this.#check(client)
    const { lost } = this.continuity
    if (lost === null || even !== undefined) return client
    client.release()
    throw new StateUnreachableError(lost)
  }

  /** The check is not a hook of the pool: there a request that gave up meanwhile would keep the connection for good. */
  async #check(client: PoolClient): Promise<void> {
    try {
      await readOrigin(client, { schema: unquoted(this.schema), continuity: this.continuity })
      this.#checked.add(client)
    } catch (error) {
      client.release(true)
      throw unreachable(error)
    }
  }

  async #pooled(): Promise<PoolClient> {
    if (this.#pool.waitingCount >= MAX_WAITING)
      throw new StateUnreachableError('too many requests wait for the state database')
    try {
      return await this.#pool.connect()
    } catch (cause) {
      throw new StateUnreachableError(`the state database cannot be reached: ${reasonOf(cause)}`, { cause })
    }
  }

  /** A transaction that may take long. */
  async long<T>(access: 'READ ONLY' | 'READ WRITE', work: (ask: RunQuery) => Promise<T>, even?: EvenLost): Promise<T> {
    const client = await this.#trusted(even)
    const ask: RunQuery = async (text, values) => {
      const asked = { text, values: [...values], query_timeout: WHOLE_MS }
      return (await client.query(asked)).rows
    }
    try {
      // What is read page by page is all of one moment.
      await ask(`BEGIN ISOLATION LEVEL ${access === 'READ ONLY' ? 'REPEATABLE READ' : 'READ COMMITTED'} ${access}`, [])
      await ask(`SET LOCAL statement_timeout = ${WHOLE_MS}`, [])
      const answer = await work(ask)
      await ask('COMMIT', [])
      client.release()
      return answer
    } catch (error) {
      // The connection goes away with its transaction.
      client.release(true)
      throw unreachable(error)
    }
  }

  close(): Promise<void> {
    return this.#pool.end()
  }
}

/** Arguments of `countFunction`. Counters come in the order in which all gateways lock them. */
export interface CountBatch {
  readonly owner: string
  /** After that moment, by the database's clock, no take of the batch is counted. */
  readonly deadline: number
  readonly keys: readonly string[]
  readonly windows: readonly string[]
  readonly ends: readonly (number | null)[]
  readonly operations: readonly object[]
}

/** Result of `countFunction`. */
export interface CountResult {
  readonly answers?: readonly Counted[]
  readonly xid?: string
}

interface Query {
  readonly text: string
  readonly values: unknown[]
  readonly query_timeout?: number
}

/** Reads which database this is. One that is older than what was seen is marked as lost, so that every gateway stops. */
async function readOrigin(
  client: PoolClient,
  { schema, continuity }: Pick<DatabaseOptions, 'schema' | 'continuity'>,
): Promise<void> {
  const before = continuity.mark
  const { rows } = await client.query<OriginRow>(
    `SELECT o.id, o.epoch, o.adopts, o.lost, w.beat, pg_snapshot_xmax(pg_current_snapshot())::text AS xid
       FROM "${schema}".origin o LEFT JOIN "${schema}".witness w ON w.id = $1`,
    [continuity.witness],
  )
  const [row] = rows
  if (row === undefined) throw new Error('the table "origin" is empty')
  continuity.check(row, before)
  if (continuity.lost !== null && row.lost === null && row.id === continuity.origin) {
    // A database that belongs to others is left alone: only this gateway is at the wrong place. An adoption that came since the row was
    // read stays: what is lost now was lost before it.
    const mark = `UPDATE "${schema}".origin SET lost = $1 WHERE lost IS NULL AND epoch = $2`
    await client.query(mark, [continuity.lost, row.epoch])
  }
}

function unquoted(name: string): string {
  return name.slice(1, -1)
}

function unreachable(cause: unknown): StateUnreachableError {
  if (cause instanceof StateUnreachableError) return cause
  const stage = isRefused(cause) ? 'refused' : 'unknown'
  return new StateUnreachableError(`the state database does not answer: ${reasonOf(cause)}`, { stage, cause })
}

/** Another transaction kept a lock for too long; nothing was done. */
export function wasLocked(error: unknown): boolean {
  return error instanceof StateUnreachableError && isLockTimeout(error.cause)
}

/** A text as the database takes it: without NUL and half surrogates. Most texts stay as they are. */
export function storedText(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}

/** The text of which `storedText` gave this. */
export function textOf(stored: string): string {
  return stored.includes('\\') ? String(JSON.parse(`"${stored}"`)) : stored
}

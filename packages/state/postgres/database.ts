import { reasonOf, SharedPool } from '@plat/core'
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

/** Timeout of a statement that reads or writes a whole journal, in milliseconds. */
const WHOLE_MS = 60_000
/** Timeout of a counting batch, in milliseconds: its calls wait for it. */
const COUNT_MS = 3_000

/** For statements that a gateway needs to start: with a database that lost data it starts as well, and denies every call. */
export const EVEN_LOST = 'even lost'
type EvenLost = typeof EVEN_LOST

/** Runs a query within a transaction. */
export type RunQuery = <R extends QueryResultRow>(statement: string, values: readonly unknown[]) => Promise<R[]>

export interface DatabaseOptions extends PoolOptions {
  /** Created if missing. */
  readonly schema: string
  readonly continuity: Continuity
  /** Requests of this replica that wait for a connection; one more is refused at once. Default: the row of the pool. */
  readonly requests?: SharedPool | undefined
}

/** Everything but appends to journals has one share of the requests. */
const EVERYTHING_ELSE = ''

/** The gateway's schema. Failed queries reject with StateUnreachableError; the next query tries again. */
export class Database {
  /** Quoted schema name: `"plat"`. */
  readonly schema: string
  readonly continuity: Continuity
  readonly #pool: Pool
  readonly #requests: SharedPool
  /** Connections on which continuity was checked after they were opened. */
  readonly #checked = new WeakSet<PoolClient>()

  private constructor(pool: Pool, { schema, continuity, requests }: DatabaseOptions) {
    this.#pool = pool
    this.schema = `"${schema}"`
    this.continuity = continuity
    this.#requests = requests ?? new SharedPool({ name: 'state_requests' })
  }

  /**
   * Rejects when the server refuses, or has a schema of a later release, and with StateUnreachableError when it is unreachable: no decision is made
   * on partial state.
   */
  static async open(options: DatabaseOptions): Promise<Database> {
    const pool = await openPool(options)
    try {
      await migrate(pool, stateTables(options.schema))
      const database = new Database(pool, options)
      await database.checkOrigin()
      return database
    } catch (error) {
      await pool.end()
      if (isPermanent(error)) throw new Error(`the state database refuses: ${reasonOf(error)}`)
      throw new StateUnreachableError(`the state database cannot be reached: ${reasonOf(error)}`)
    }
  }

  /** Compares the database with what was seen of it, also while it counts as lost. Rejects when it is unreachable. */
  async checkOrigin(): Promise<void> {
    const client = await this.#pooled()
    await this.#check(client)
    client.release()
  }

  /** Accepts the database as it is, for every gateway. */
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

  /** Records that the database lacks acknowledged data, for the other gateways as well. */
  async lose(why: string): Promise<void> {
    this.continuity.lose(why)
    await this.checkOrigin()
  }

  rows<R extends QueryResultRow>(statement: string, values: readonly unknown[], even?: EvenLost): Promise<R[]> {
    return this.#query<R>({ text: statement, values: [...values] }, even)
  }

  /** Appends to a journal, whose requests have a separate share. Idempotent, like `again`. */
  append<R extends QueryResultRow>(journal: string, statement: string, values: readonly unknown[]): Promise<R[]> {
    return this.#twice<R>({ text: statement, values: [...values], journal })
  }

  /** For idempotent statements: sent once more when the connection broke before the result. */
  again<R extends QueryResultRow>(statement: string, values: readonly unknown[], even?: EvenLost): Promise<R[]> {
    return this.#twice<R>({ text: statement, values: [...values] }, even)
  }

  /** Counts a batch: see `countFunction`. */
  async count(batch: CountBatch): Promise<CountResult> {
    const text = `SELECT ${this.schema}.count($1, $2, $3, $4, $5, $6::jsonb) AS result`
    const { owner, deadline, keys, windows, ends, operations } = batch
    const values = [owner, deadline, keys, windows, ends, JSON.stringify(operations)]
    const [row] = await this.#twice<{ result: CountResult }>({ text, values, query_timeout: COUNT_MS })
    return row?.result ?? {}
  }

  /** Returns the index of the first counter of a batch that another transaction has locked; null when there is none or it is unknown. */
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
      // A second attempt that could not be sent proves nothing about the first.
      return this.#query<R>(query, even).catch((second: unknown) => {
        throw second instanceof StateUnreachableError && second.stage === 'connect' ? error : second
      })
    }
  }

  async #query<R extends QueryResultRow>({ journal, ...query }: Query, even?: EvenLost): Promise<R[]> {
    const client = await this.#trusted(even, journal)
    try {
      const { rows } = await client.query<R>(query)
      client.release()
      return rows
    } catch (error) {
      client.release(true)
      throw unreachable(error)
    }
  }

  /** Returns a connection to a database that has lost nothing. */
  async #trusted(even?: EvenLost, journal?: string): Promise<PoolClient> {
    const client = await this.#pooled(journal)
    if (!this.#checked.has(client)) await this.#check(client)
    const { lost } = this.continuity
    if (lost === null || even !== undefined) return client
    client.release()
    throw new StateUnreachableError(lost)
  }

  /** Not a hook of the pool: there a request that gave up meanwhile would keep the connection for good. */
  async #check(client: PoolClient): Promise<void> {
    try {
      await readOrigin(client, { schema: unquoted(this.schema), continuity: this.continuity })
      this.#checked.add(client)
    } catch (error) {
      client.release(true)
      throw unreachable(error)
    }
  }

  async #pooled(caller = EVERYTHING_ELSE): Promise<PoolClient> {
    if (this.#requests.acquire(caller) !== null)
      throw new StateUnreachableError('too many requests are queued for the state database')
    try {
      return await this.#pool.connect()
    } catch (cause) {
      throw new StateUnreachableError(`the state database cannot be reached: ${reasonOf(cause)}`, { cause })
    } finally {
      this.#requests.release(caller)
    }
  }

  async long<T>(access: 'READ ONLY' | 'READ WRITE', work: (ask: RunQuery) => Promise<T>, even?: EvenLost): Promise<T> {
    const client = await this.#trusted(even)
    const ask: RunQuery = async (text, values) => {
      const requestedAt = { text, values: [...values], query_timeout: WHOLE_MS }
      return (await client.query(requestedAt)).rows
    }
    try {
      // Pages are read from one snapshot.
      await ask(`BEGIN ISOLATION LEVEL ${access === 'READ ONLY' ? 'REPEATABLE READ' : 'READ COMMITTED'} ${access}`, [])
      await ask(`SET LOCAL statement_timeout = ${WHOLE_MS}`, [])
      const answer = await work(ask)
      await ask('COMMIT', [])
      client.release()
      return answer
    } catch (error) {
      // Destroys the connection with its transaction.
      client.release(true)
      throw unreachable(error)
    }
  }

  close(): Promise<void> {
    return this.#pool.end()
  }
}

/** Arguments of `countFunction`. Counters are in the lock order of all gateways. */
export interface CountBatch {
  readonly owner: string
  /** By the database's clock; later takes of the batch are not counted. */
  readonly deadline: number
  readonly keys: readonly string[]
  readonly windows: readonly string[]
  readonly ends: readonly (number | null)[]
  readonly operations: readonly object[]
}

export interface CountResult {
  readonly answers?: readonly Counted[]
  readonly xid?: string
}

interface Query {
  readonly text: string
  readonly values: unknown[]
  readonly query_timeout?: number
  /** The journal that it appends to, if any. */
  readonly journal?: string
}

/** Reads the identity of the database. One older than what was seen is marked as lost, so that every gateway stops. */
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
    // A database of other gateways is not modified: only this gateway is misconfigured. An adoption since the read wins: the loss happened before
    // it.
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
  return new StateUnreachableError(`the state database does not respond: ${reasonOf(cause)}`, { stage, cause })
}

/** Returns whether another transaction held a lock too long; the batch was rolled back. */
export function wasLocked(error: unknown): boolean {
  return error instanceof StateUnreachableError && isLockTimeout(error.cause)
}

/** Encodes a text for storage: without NUL and lone surrogates. Most texts stay unchanged. */
export function storedText(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}

export function textOf(stored: string): string {
  return stored.includes('\\') ? String(JSON.parse(`"${stored}"`)) : stored
}

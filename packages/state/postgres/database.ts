import { reasonOf } from '@plat/core'
import type { Pool, PoolClient, QueryResultRow } from 'pg'
import { isBroken, isPermanent, openPool, StateUnreachable } from './pool.ts'
import { migrate } from './schema.ts'
import { stateTables } from './tables.ts'

/** Requests of one replica that wait for a connection at most; one more is refused at once. */
const MAX_WAITING = 1000
/** How long a statement may take that reads or writes a whole journal, in milliseconds. */
const WHOLE_MS = 60_000

/** Asks within a transaction. */
export type Ask = <R extends QueryResultRow>(statement: string, values: readonly unknown[]) => Promise<R[]>

export interface DatabaseOptions {
  readonly dsn: string
  /** Made when it is missing. */
  readonly schema: string
  readonly maxConnections: number
  /** Told what goes wrong beside requests; one line without secrets. */
  warn(message: string): void
}

/** The gateway's schema. What cannot be answered rejects with `StateUnreachable`; the next question tries again. */
export class Database {
  /** Before each name: `"plat"`. */
  readonly schema: string
  readonly #pool: Pool

  private constructor(pool: Pool, schema: string) {
    this.#pool = pool
    this.schema = `"${schema}"`
  }

  /** Rejects when the server cannot be reached, refuses, or has a schema of a later release: nothing is decided on half a state. */
  static async open(options: DatabaseOptions): Promise<Database> {
    const pool = await openPool(options)
    try {
      await migrate(pool, stateTables(options.schema))
      return new Database(pool, options.schema)
    } catch (error) {
      await pool.end()
      const what = isPermanent(error) ? 'the state database refuses' : 'the state database cannot be reached'
      throw new Error(`${what}: ${reasonOf(error)}`)
    }
  }

  async rows<R extends QueryResultRow>(statement: string, values: readonly unknown[]): Promise<R[]> {
    if (this.#pool.waitingCount >= MAX_WAITING)
      throw new StateUnreachable('too many requests wait for the state database')
    try {
      return (await this.#pool.query<R>(statement, [...values])).rows
    } catch (error) {
      throw unreachable(error)
    }
  }

  /** For what happens once however often it is asked: asked once more when the connection broke before the answer. */
  async again<R extends QueryResultRow>(statement: string, values: readonly unknown[]): Promise<R[]> {
    try {
      return await this.rows<R>(statement, values)
    } catch (error) {
      if (error instanceof Error && isBroken(error.cause)) return this.rows<R>(statement, values)
      throw error
    }
  }

  /** A transaction that may take long. */
  async long<T>(access: 'READ ONLY' | 'READ WRITE', work: (ask: Ask) => Promise<T>): Promise<T> {
    let client: PoolClient
    try {
      client = await this.#pool.connect()
    } catch (error) {
      throw unreachable(error)
    }
    const ask: Ask = async (text, values) => {
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

function unreachable(error: unknown): StateUnreachable {
  return new StateUnreachable(`the state database does not answer: ${reasonOf(error)}`, { cause: error })
}

/** A text as the database takes it: without NUL and half surrogates. Most texts stay as they are. */
export function storedText(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}

/** The text of which `storedText` gave this. */
export function textOf(stored: string): string {
  return stored.includes('\\') ? String(JSON.parse(`"${stored}"`)) : stored
}

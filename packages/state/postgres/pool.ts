import { readFile } from 'node:fs/promises'
import { reasonOf } from '@plat/core'
import type { Pool } from 'pg'
import { SchemaTooNewError } from './schema.ts'

/** Timeout of opening or acquiring a connection, in milliseconds. */
const CONNECT_MS = 2000
/** Server-side statement timeout in milliseconds: the server cancels and rolls back. */
const STATEMENT_MS = 5000
/** Client-side timeout in milliseconds: without a response it is unknown whether the statement was executed. */
const ANSWER_MS = STATEMENT_MS + 2000
/** How long a transaction may stay idle, in milliseconds: a paused gateway must not keep its locks. */
const IDLE_MS = 10_000
/** Maximum DSN length in bytes. */
const MAX_DSN_BYTES = 4096

/** The state is unreachable, or does not respond in time. The message names neither server nor secret. */
export class StateUnreachableError extends Error {
  /** Whether a statement was executed: `connect` never sent, `refused` rolled back by the server, `unknown` sent without a response. */
  readonly stage: 'connect' | 'refused' | 'unknown'

  constructor(message: string, { stage = 'connect', ...options }: StateUnreachableOptions = {}) {
    super(message, options)
    this.stage = stage
  }
}

export interface StateUnreachableOptions extends ErrorOptions {
  readonly stage?: StateUnreachableError['stage']
}

/** Reads the one line of a file with a DSN. Rejects with a message that continues the file name and never quotes the content. */
export async function readDsn(file: string): Promise<string> {
  const text = (await readFile(file, 'utf8').catch(() => '')).replace(/\r?\n$/, '')
  if (text === '') throw new Error('is missing, empty or unreadable')
  if (text.length > MAX_DSN_BYTES || !/^postgres(ql)?:\/\/[^\s]+$/.test(text)) {
    throw new Error('must hold one DSN: postgres://user:password@host:5432/database?sslmode=verify-full')
  }
  return text
}

/** Options of each connection. */
export function connectionOf(dsn: string) {
  return {
    connectionString: dsn,
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: ANSWER_MS,
    statement_timeout: STATEMENT_MS,
    idle_in_transaction_session_timeout: IDLE_MS,
    keepAlive: true,
    application_name: 'plat',
  } as const
}

export interface PoolOptions {
  readonly dsn: string
  readonly maxConnections: number
  /** Called with problems outside requests; one line without secrets. */
  warn(message: string): void
}

/** Creates the connections of a process, opened on demand. Loads `pg` only then. */
export async function openPool({ dsn, maxConnections, warn }: PoolOptions): Promise<Pool> {
  const { Pool } = await import('pg')
  const pool = new Pool({ ...connectionOf(dsn), max: maxConnections })
  // A connection that breaks during use fails its statement; without a listener the event would end the process.
  pool.on('connect', (client) => void client.on('error', () => {}))
  // An idle connection that breaks affects no request: the pool opens another. Server messages may be logged: they name roles and tables, but no
  // password and no row.
  pool.on('error', (error) => {
    if (!pool.ending) warn(`a connection to the state database broke: ${reasonOf(error)}`)
  })
  return pool
}

/** SQLSTATE classes of temporary errors: connection, resources, operator intervention, system, transaction. */
const TEMPORARY = /^(08|40|53|55|57|58|XX)/
/** Classes after which the transaction is rolled back and can be repeated at once. */
const BROKEN = /^(08|40|57P0[123])/

/** Returns whether retrying is pointless: the server refused, or the schema is incompatible. */
export function isPermanent(error: unknown): boolean {
  if (error instanceof SchemaTooNewError) return true
  return sqlState(error) !== null && !TEMPORARY.test(sqlState(error) ?? '')
}

/** Returns whether the connection broke, as opposed to a timeout. */
export function isBroken(error: unknown): boolean {
  const state = sqlState(error)
  return state === null ? !/timeout/.test(reasonOf(error)) : BROKEN.test(state)
}

/** Returns whether the server reported that the statement was not executed. */
export function isRefused(error: unknown): boolean {
  const state = sqlState(error)
  return state !== null && !/^(08|57P)/.test(state)
}

/** SQLSTATE `lock_not_available` */
export function isLockTimeout(error: unknown): boolean {
  return sqlState(error) === '55P03'
}

/** PostgreSQL documentation, appendix A: five characters. Errors of sockets have longer codes. */
function sqlState(error: unknown): string | null {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return null
  return /^[0-9A-Z]{5}$/.test(error.code) ? error.code : null
}

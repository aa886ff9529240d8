import { readFile } from 'node:fs/promises'
import { reasonOf } from '@plat/core'
import type { Pool } from 'pg'
import { SchemaTooNewError } from './schema.ts'

/** How long a connection may take to come up or to come free, in milliseconds. */
const CONNECT_MS = 2000
/** How long a statement may take in the server, in milliseconds: it gives up, and what it was asked is not done. */
const STATEMENT_MS = 5000
/** How long we wait for that word of it, in milliseconds: without it nobody knows whether the statement was done. */
const ANSWER_MS = STATEMENT_MS + 2000
/** How long a transaction may stay open while its gateway does nothing, in milliseconds: a paused one must not keep its locks. */
const IDLE_MS = 10_000
/** Longest DSN, in bytes. */
const MAX_DSN_BYTES = 4096

/** The state cannot be reached, or does not answer in time. The message names neither server nor secret. */
export class StateUnreachableError extends Error {
  /** Whether a statement was done: `connect` never sent, `refused` rolled back by the server, `unknown` sent and not answered. */
  readonly stage: 'connect' | 'refused' | 'unknown'

  constructor(message: string, { stage = 'connect', ...options }: StateUnreachableOptions = {}) {
    super(message, options)
    this.stage = stage
  }
}

export interface StateUnreachableOptions extends ErrorOptions {
  readonly stage?: StateUnreachableError['stage']
}

/** The one line of a file with a DSN. Rejects in words that follow the file's name; they never quote it. */
export async function readDsn(file: string): Promise<string> {
  const text = (await readFile(file, 'utf8').catch(() => '')).replace(/\r?\n$/, '')
  if (text === '') throw new Error('is missing, empty or unreadable')
  if (text.length > MAX_DSN_BYTES || !/^postgres(ql)?:\/\/[^\s]+$/.test(text)) {
    throw new Error('must hold one DSN: postgres://user:password@host:5432/database?sslmode=verify-full')
  }
  return text
}

/** How each connection is opened. */
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
  /** Called with what goes wrong beside requests; one line without secrets. */
  warn(message: string): void
}

/** Connections of one process, opened when they are needed. Loads `pg`: a process that needs no database never does. */
export async function openPool({ dsn, maxConnections, warn }: PoolOptions): Promise<Pool> {
  const { Pool } = await import('pg')
  const pool = new Pool({ ...connectionOf(dsn), max: maxConnections })
  // A connection in use that breaks fails its statement; without a listener the event would end the process.
  pool.on('connect', (client) => void client.on('error', () => {}))
  // An idle connection that breaks is not an error of anybody: the pool opens another. Messages of a server may be logged: they name
  // roles and tables, but no password and no row.
  pool.on('error', (error) => {
    if (!pool.ending) warn(`a connection to the state database broke: ${reasonOf(error)}`)
  })
  return pool
}

/** SQLSTATE classes that say "not now": connection, resources, intervention of an operator, system, transaction. */
const TEMPORARY = /^(08|40|53|55|57|58|XX)/
/** Those after which the transaction is gone, and the same may be asked again at once. */
const BROKEN = /^(08|40|57P0[123])/

/** Would trying again later come to the same? The server said no, or the schema is not ours. */
export function isPermanent(error: unknown): boolean {
  if (error instanceof SchemaTooNewError) return true
  return sqlState(error) !== null && !TEMPORARY.test(sqlState(error) ?? '')
}

/** Did the connection break, and not the time run out? */
export function isBroken(error: unknown): boolean {
  const state = sqlState(error)
  return state === null ? !/timeout/.test(reasonOf(error)) : BROKEN.test(state)
}

/** Did the server say that the statement was not done? */
export function isRefused(error: unknown): boolean {
  const state = sqlState(error)
  return state !== null && !/^(08|57P)/.test(state)
}

/** SQLSTATE `lock_not_available` */
export function isLockTimeout(error: unknown): boolean {
  return sqlState(error) === '55P03'
}

/** PostgreSQL documentation, appendix A: five characters. Errors of sockets have longer names. */
function sqlState(error: unknown): string | null {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return null
  return /^[0-9A-Z]{5}$/.test(error.code) ? error.code : null
}

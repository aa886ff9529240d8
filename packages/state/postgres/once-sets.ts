import { hash } from 'node:crypto'
import { type Clock, ExpiringMap, reasonOf, SharedPool } from '@plat/core'
import type { Pool } from 'pg'
import type { OnceSet, OnceSets, OnceVerdict } from '../once/once.ts'
import { isPermanent, openPool, StateUnreachableError } from './pool.ts'
import { migrate, ONCE_TABLES } from './schema.ts'

/** Maximum number of connections of a replica. */
const MAX_CONNECTIONS = 10
/** Interval at which expired entries are deleted and live ones counted, in milliseconds. */
const SWEEP_EVERY_MS = 60_000
/** Grace period of an expired entry, in milliseconds: a replica whose clock is behind must still find it. */
const SWEEP_GRACE_MS = 10 * 60_000
/** Maximum number of entries deleted by one statement. */
const SWEEP_BATCH = 10_000

export interface PostgresOptions {
  /** `postgres://user:password@host:5432/database?sslmode=verify-full`. */
  readonly dsn: string
  readonly clock: Clock
  /** Requests of this replica that wait for a connection; one more is refused at once. Default: the row of the pool. */
  readonly requests?: SharedPool
  /** Called with problems outside requests; one line without secrets. */
  warn(message: string): void
}

/**
 * Opens sets that all replicas share, in Postgres. While the server is unreachable every query rejects with StateUnreachableError, and the next one
 * tries again. Rejects when retrying would not help: an invalid DSN, a wrong password, a missing database, a schema of a later release.
 */
export async function openPostgresOnceSets(options: PostgresOptions): Promise<OnceSets> {
  const pool = await openPool({ ...options, maxConnections: MAX_CONNECTIONS })
  const sets = new PostgresOnceSets(pool, options)
  try {
    await sets.start()
    return sets
  } catch (error) {
    await sets.close()
    throw error
  }
}

class PostgresOnceSets implements OnceSets {
  readonly #pool: Pool
  readonly #options: PostgresOptions
  readonly #requests: SharedPool
  readonly #stopSweeping: () => void
  /** Live entries of each kind at the last count. */
  #counts: ReadonlyMap<string, number> = new Map()
  #ready: Promise<void> | null = null

  constructor(pool: Pool, options: PostgresOptions) {
    this.#pool = pool
    this.#options = options
    this.#requests = options.requests ?? new SharedPool({ name: 'set_requests' })
    this.#stopSweeping = options.clock.every(SWEEP_EVERY_MS, () => void this.#sweepQuietly())
  }

  async start(): Promise<void> {
    try {
      await this.#schema()
      await this.#sweep()
    } catch (error) {
      if (isPermanent(error)) throw new Error(`the state database refuses: ${reasonOf(error)}`)
      this.#options.warn(`the state database cannot be reached: ${reasonOf(error)}`)
    }
  }

  set(name: string, cap: number | SharedPool): OnceSet {
    return new PostgresOnceSet(this, { name, cap, clock: this.#options.clock })
  }

  async close(): Promise<void> {
    this.#stopSweeping()
    await this.#pool.end()
  }

  /** Returns the live entries of a kind at the last count: between two counts a cap can be exceeded by the entries of a minute. */
  count(kind: string): number {
    return this.#counts.get(kind) ?? 0
  }

  /** Returns the first column of the first row; null without a row. */
  async one(caller: string, statement: string, values: readonly unknown[]): Promise<string | null> {
    if (this.#requests.acquire(caller) !== null)
      throw new StateUnreachableError('too many requests are queued for the state database')
    try {
      await this.#schema()
      const answer = await this.#pool.query<{ value: string }>(statement, [...values])
      return answer.rows[0]?.value ?? null
    } catch (error) {
      throw new StateUnreachableError(`the state database does not respond: ${reasonOf(error)}`)
    } finally {
      this.#requests.release(caller)
    }
  }

  /** Created once; a failed attempt is repeated by the next query. */
  #schema(): Promise<void> {
    this.#ready ??= migrate(this.#pool, ONCE_TABLES).catch((error: unknown) => {
      this.#ready = null
      throw error
    })
    return this.#ready
  }

  async #sweepQuietly(): Promise<void> {
    try {
      await this.#schema()
      await this.#sweep()
    } catch (error) {
      this.#options.warn(`the state database could not be swept: ${reasonOf(error)}`)
    }
  }

  async #sweep(): Promise<void> {
    const now = this.#options.clock.now()
    let deleted: number | null
    do {
      const answer = await this.#pool.query(
        `DELETE FROM plat_once WHERE (kind, key) IN
           (SELECT kind, key FROM plat_once WHERE until <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)`,
        [now - SWEEP_GRACE_MS, SWEEP_BATCH],
      )
      deleted = answer.rowCount
    } while (deleted === SWEEP_BATCH)
    const counted = await this.#pool.query<{ kind: string; living: number }>(
      'SELECT kind, count(*)::integer AS living FROM plat_once WHERE until > $1 GROUP BY kind',
      [now],
    )
    this.#counts = new Map(counted.rows.map(({ kind, living }) => [kind, living]))
  }
}

interface SetOptions {
  readonly name: string
  readonly cap: number | SharedPool
  readonly clock: Clock
}

/** Keys are stored as their SHA-256: any text fits, and the database learns no identifier from it. */
class PostgresOnceSet implements OnceSet {
  readonly #sets: PostgresOnceSets
  readonly #options: SetOptions
  /** Entries inserted by this replica, for the shares of callers; null without a pool. */
  readonly #own: ExpiringMap<true> | null

  constructor(sets: PostgresOnceSets, options: SetOptions) {
    this.#sets = sets
    this.#options = options
    const { clock, cap } = options
    this.#own = typeof cap === 'number' ? null : new ExpiringMap({ clock, cap })
  }

  async insert(key: string, value: string, until: number, caller = ''): Promise<OnceVerdict> {
    const { name, cap } = this.#options
    if (this.#sets.count(name) >= (typeof cap === 'number' ? cap : cap.total)) return 'full'
    const own = this.#own?.insert(key, true, until, caller)
    if (own === 'full') return 'full'
    let isInserted = false
    try {
      isInserted = await this.#insert(key, value, { until, caller: caller || name })
    } finally {
      if (own === 'inserted' && !isInserted) this.#own?.take(key)
    }
    return isInserted ? 'inserted' : 'taken'
  }

  async #insert(
    key: string,
    value: string,
    { until, caller }: { readonly until: number; readonly caller: string },
  ): Promise<boolean> {
    const { name, clock } = this.#options
    const inserted = await this.#sets.one(
      caller,
      `INSERT INTO plat_once AS old (kind, key, value, until) VALUES ($1, $2, $3, $4)
       ON CONFLICT (kind, key) DO UPDATE SET value = EXCLUDED.value, until = EXCLUDED.until WHERE old.until <= $5
       RETURNING value`,
      [name, digest(key), value, Math.ceil(until), clock.now()],
    )
    return inserted !== null
  }

  get(key: string): Promise<string | null> {
    const { name, clock } = this.#options
    return this.#sets.one(name, 'SELECT value FROM plat_once WHERE kind = $1 AND key = $2 AND until > $3', [
      name,
      digest(key),
      clock.now(),
    ])
  }

  take(key: string): Promise<string | null> {
    const { name, clock } = this.#options
    this.#own?.take(key)
    return this.#sets.one(name, 'DELETE FROM plat_once WHERE kind = $1 AND key = $2 AND until > $3 RETURNING value', [
      name,
      digest(key),
      clock.now(),
    ])
  }
}

function digest(key: string): Buffer {
  return hash('sha256', key, 'buffer')
}

import { hash } from 'node:crypto'
import { type Clock, ExpiringMap, type Ids, SharedPool } from '@plat/core'
import type { OnceSet, OnceSets, OnceVerdict } from '../../once/once.ts'
import type { ServerClock } from '../counting/server-clock.ts'
import { type Database, storedText, textOf } from '../database.ts'
import { StateUnreachableError } from '../pool.ts'

/** Maximum number of keys that one statement inserts. */
const BATCH = 500
/** Maximum number of concurrent statements of a replica. */
const MAX_FLIGHTS = 4
/** Interval at which the entries of all replicas are counted, in milliseconds. */
const COUNT_EVERY_MS = 60_000

interface Insertion {
  /** Of set and key: a statement cannot insert one key twice. */
  readonly name: string
  readonly kind: string
  readonly key: Buffer
  readonly value: string
  readonly until: number
  resolve(isInserted: boolean): void
  reject(error: unknown): void
}

export interface SharedOnceOptions {
  readonly database: Database
  readonly clock: Clock
  /** Decides when entries end, for all replicas. */
  readonly serverClock: ServerClock
  readonly ids: Ids
  /** Insertions that wait. Default: the row of the pool. */
  readonly queued?: SharedPool | undefined
}

/**
 * Sets that gateways share. Insertions that arrive during a round trip are sent together in the next one, so the number of statements does not grow
 * with the number of calls.
 */
export class SharedOnceSets implements OnceSets {
  readonly #options: SharedOnceOptions
  readonly #queued: SharedPool
  readonly #stopCounting: () => void
  readonly #kinds = new Set<string>()
  /** Live entries of each kind at the last count. */
  #counts: ReadonlyMap<string, number> = new Map()
  #queue: Insertion[] = []
  #flights = 0

  constructor(options: SharedOnceOptions) {
    this.#options = options
    this.#queued = options.queued ?? new SharedPool({ name: 'queued_keys' })
    this.#stopCounting = options.clock.every(COUNT_EVERY_MS, () => void this.recount().catch(() => {}))
  }

  set(kind: string, cap: number | SharedPool): OnceSet {
    this.#kinds.add(kind)
    return new SharedOnceSet(this, { kind, cap, clock: this.#options.clock })
  }

  async close(): Promise<void> {
    this.#stopCounting()
  }

  /** Returns the live entries of a kind at the last count: between two counts a cap can be exceeded by the entries of a minute. */
  count(kind: string): number {
    return this.#counts.get(kind) ?? 0
  }

  /** Counts the entries of the sets that are used here. Rejects with StateUnreachableError. */
  async recount(): Promise<void> {
    if (this.#kinds.size === 0) return
    const { database, serverClock } = this.#options
    const counted = await database.rows<{ kind: string; live: number }>(
      `SELECT kind, count(*)::integer AS live FROM ${database.schema}.once WHERE kind = ANY ($1) AND until > $2 GROUP BY kind`,
      [[...this.#kinds], serverClock.now()],
    )
    this.#counts = new Map(counted.map(({ kind, live }) => [kind, live]))
  }

  /** Resolves with whether the key was inserted. Rejects with StateUnreachableError; the key may be inserted then. */
  insert(entry: Omit<Insertion, 'name' | 'resolve' | 'reject'>, caller: string): Promise<boolean> {
    if (this.#queued.acquire(caller) !== null)
      return Promise.reject(new StateUnreachableError('too many keys are queued for the state database'))
    const { promise, resolve, reject } = Promise.withResolvers<boolean>()
    this.#queue.push({ ...entry, name: `${entry.kind} ${entry.key.toString('latin1')}`, resolve, reject })
    this.#fly()
    return promise.finally(() => this.#queued.release(caller))
  }

  /** Returns the first column of the first row; null without a row. */
  async one(text: string, kind: string, key: Buffer): Promise<string | null> {
    const { database, serverClock } = this.#options
    const [row] = await database.rows<{ value: string }>(text, [kind, key, serverClock.now()])
    return row === undefined ? null : textOf(row.value)
  }

  get table(): string {
    return `${this.#options.database.schema}.once`
  }

  #fly(): void {
    while (this.#flights < MAX_FLIGHTS && this.#queue.length > 0) {
      const batch = this.#next()
      this.#flights++
      void this.#send(batch).finally(() => {
        this.#flights--
        this.#fly()
      })
    }
  }

  /** Removes the next batch from the queue. A key that is in it already waits for the next one. */
  #next(): Insertion[] {
    const batch = new Map<string, Insertion>()
    const later: Insertion[] = []
    for (const insertion of this.#queue) {
      if (batch.size < BATCH && !batch.has(insertion.name)) batch.set(insertion.name, insertion)
      else later.push(insertion)
    }
    this.#queue = later
    return [...batch.values()]
  }

  async #send(batch: readonly Insertion[]): Promise<void> {
    const { database, serverClock, ids } = this.#options
    try {
      // All replicas lock keys in one order, so that batches cannot deadlock. `by` lets a repeated statement find its own rows.
      const rows = await database.again<{ kind: string; key: Buffer }>(
        `INSERT INTO ${this.table} AS o (kind, key, value, until, by)
           SELECT u.kind, u.key, u.value, u.until, $5 FROM unnest($1::text[], $2::bytea[], $3::text[], $4::bigint[])
             AS u(kind, key, value, until) ORDER BY u.kind, u.key
           ON CONFLICT (kind, key) DO UPDATE SET value = EXCLUDED.value, until = EXCLUDED.until, by = EXCLUDED.by
             WHERE o.until <= $6 OR o.by = EXCLUDED.by
           RETURNING o.kind, o.key`,
        [
          batch.map(({ kind }) => kind),
          batch.map(({ key }) => key),
          batch.map(({ value }) => storedText(value)),
          batch.map(({ until }) => Math.ceil(until)),
          ids.uuid(),
          serverClock.now(),
        ],
      )
      const inserted = new Set(rows.map(({ kind, key }) => `${kind} ${key.toString('latin1')}`))
      for (const { name, resolve } of batch) resolve(inserted.has(name))
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }
}

interface SetOptions {
  readonly kind: string
  readonly cap: number | SharedPool
  readonly clock: Clock
}

/** Keys are stored as their SHA-256: any text fits, and the database learns no identifier from it. */
class SharedOnceSet implements OnceSet {
  readonly #sets: SharedOnceSets
  readonly #options: SetOptions
  /** Entries inserted by this replica, for the shares of callers; null without a pool. */
  readonly #own: ExpiringMap<true> | null

  constructor(sets: SharedOnceSets, options: SetOptions) {
    this.#sets = sets
    this.#options = options
    const { clock, cap } = options
    this.#own = typeof cap === 'number' ? null : new ExpiringMap({ clock, cap })
  }

  async insert(key: string, value: string, until: number, caller = ''): Promise<OnceVerdict> {
    const { kind, cap } = this.#options
    if (this.#sets.count(kind) >= (typeof cap === 'number' ? cap : cap.total)) return 'full'
    const own = this.#own?.insert(key, true, until, caller)
    if (own === 'full') return 'full'
    let isInserted = false
    try {
      isInserted = await this.#sets.insert({ kind, key: digest(key), value, until }, caller || kind)
    } finally {
      if (own === 'inserted' && !isInserted) this.#own?.take(key)
    }
    return isInserted ? 'inserted' : 'taken'
  }

  get(key: string): Promise<string | null> {
    const { kind } = this.#options
    const select = `SELECT value FROM ${this.#sets.table} WHERE kind = $1 AND key = $2 AND until > $3`
    return this.#sets.one(select, kind, digest(key))
  }

  take(key: string): Promise<string | null> {
    const { kind } = this.#options
    this.#own?.take(key)
    const remove = `DELETE FROM ${this.#sets.table} WHERE kind = $1 AND key = $2 AND until > $3 RETURNING value`
    return this.#sets.one(remove, kind, digest(key))
  }
}

function digest(key: string): Buffer {
  return hash('sha256', key, 'buffer')
}

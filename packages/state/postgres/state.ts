import { type Clock, type Ids, reasonOf } from '@plat/core'
import type { Journals } from '../journals.ts'
import type { Leadership } from '../leadership.ts'
import { Counting } from './counting.ts'
import { Database, type DatabaseOptions } from './database.ts'
import { Feed } from './feed.ts'
import { openPostgresJournal } from './journal.ts'
import { Election } from './leadership.ts'
import { SharedLimits, type SharedLimitsOptions } from './limits.ts'

/** The job whose leader counts what is held by replicas that are gone. */
const KEEPING = 'state'
/** A replica that has not said for so many intervals that it lives is gone. */
const LEASE_INTERVALS = 5
/** How often the leader deletes what nobody asks for any more, in milliseconds. */
const TIDY_EVERY_MS = 60_000

export interface PostgresStateOptions extends DatabaseOptions {
  /** How often it is looked for what other replicas wrote, in milliseconds. */
  readonly pollMs: number
  /** How often this replica tries to lead, and says that it lives, in milliseconds. */
  readonly retryMs: number
  readonly clock: Clock
  readonly ids: Ids
  onLead(job: string, leads: boolean): void
}

/** What replicas share. */
export interface PostgresState {
  readonly journals: Journals
  readonly leadership: Leadership
  limits(options: SharedLimitsOptions): SharedLimits
  /** A secret by its name; `make` is for the first replica that asks. */
  secret(name: string, make: () => string): Promise<string>
  /** After everything that uses it was closed. */
  close(): Promise<void>
}

/** For `openPostgresState`. */
export async function startPostgresState(options: PostgresStateOptions): Promise<PostgresState> {
  const { clock, ids, pollMs, retryMs, warn } = options
  const database = await Database.open(options)
  const { schema } = database
  const owner = ids.uuid()
  const feed = new Feed({ database, clock, pollMs, warn })
  const counting = new Counting({ database, clock, owner })
  const onNotice = () => void feed.pull().catch(() => {})
  const election = new Election({ ...options, schema, holder: owner, onNotice })
  const leaseMs = LEASE_INTERVALS * retryMs
  const live = () =>
    database.rows(
      `INSERT INTO ${schema}.replica (id, until) VALUES ($1, clock_timestamp() + $2 * interval '1 ms')
         ON CONFLICT (id) DO UPDATE SET until = EXCLUDED.until`,
      [owner, leaseMs],
    )
  await live()
  const stopLiving = clock.every(retryMs, () => void live().catch(() => {}))
  election.run(KEEPING, (epoch, signal) => keep(database, epoch, { signal, clock, everyMs: retryMs, warn }))
  election.look()
  return {
    journals: { shared: true, open: (spec) => openPostgresJournal(spec, { database, feed, clock, ids }) },
    leadership: election,
    limits: (limits) => new SharedLimits(counting, limits),
    async secret(name, make) {
      await database.again(`INSERT INTO ${schema}.secret (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING`, [
        name,
        make(),
      ])
      const [row] = await database.rows<{ value: string }>(`SELECT value FROM ${schema}.secret WHERE name = $1`, [name])
      return row?.value ?? ''
    },
    async close() {
      stopLiving()
      await election.close()
      await counting.close()
      await feed.close()
      // What it still holds is held by nobody from now on.
      await database.rows(`DELETE FROM ${schema}.replica WHERE id = $1`, [owner]).catch(() => {})
      await database.close()
    },
  }
}

interface Keeping {
  readonly signal: AbortSignal
  readonly clock: Clock
  readonly everyMs: number
  warn(message: string): void
}

/** What the leader does until another one leads. */
function keep(database: Database, epoch: number, { signal, clock, everyMs, warn }: Keeping): Promise<void> {
  const { schema } = database
  let tidiedAt = Number.NEGATIVE_INFINITY
  let busy = false
  const turn = async () => {
    if (busy) return
    busy = true
    try {
      await database.rows(`SELECT ${schema}.sweep($1, $2)`, [KEEPING, epoch])
      if (clock.monotonic() - tidiedAt < TIDY_EVERY_MS) return
      tidiedAt = clock.monotonic()
      await database.rows(`SELECT ${schema}.tidy($1, $2)`, [KEEPING, epoch])
    } catch (error) {
      // Without a connection nothing is led, and whoever is asked for the state says so.
      if (!signal.aborted) warn(`the state database could not be swept: ${reasonOf(error)}`)
    } finally {
      busy = false
    }
  }
  const stop = clock.every(everyMs, () => void turn())
  return new Promise((resolve) => {
    signal.addEventListener(
      'abort',
      () => {
        stop()
        resolve()
      },
      { once: true },
    )
  })
}

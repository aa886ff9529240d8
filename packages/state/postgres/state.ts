import { Backoff, type Clock, type Ids, keepAlive, reasonOf, type SharedPool } from '@plat/core'
import type { Journals } from '../journals.ts'
import type { Leadership } from '../leadership.ts'
import type { Leases } from '../lease/lease.ts'
import type { OnceSets } from '../once/once.ts'
import { postgresLeases } from './claims/leases.ts'
import { SharedOnceSets } from './claims/shared-once-sets.ts'
import { Continuity } from './continuity.ts'
import { Counting } from './counting/counting.ts'
import { SharedLimits, type SharedLimitsOptions } from './counting/limits.ts'
import { ServerClock } from './counting/server-clock.ts'
import { Database, type DatabaseOptions, EVEN_LOST } from './database.ts'
import { Feed } from './feed.ts'
import { type JournalParts, openPostgresJournal } from './journal.ts'
import { Election } from './leadership.ts'
import { StateUnreachableError } from './pool.ts'
import { type LedgerCopies, ledgerCopies } from './tables/ledger-copies.ts'
import { type LedgerHeads, ledgerHeads } from './tables/ledger-heads.ts'

/** Job whose leader counts the holds of lost replicas. */
const KEEPING = 'state'
/** A replica that has not renewed for this many intervals is lost. */
const LEASE_INTERVALS = 5
/** When an unresponsive database counts as away, in milliseconds. */
const AWAY_AFTER_MS = 1_000
/** Interval at which the leader deletes unused rows, in milliseconds. */
const TIDY_EVERY_MS = 60_000
/** How long a start waits for a database that cannot be reached, in milliseconds: less than the startup probe of the chart. */
const START_WAIT_MS = 30_000
/** First and longest pause between attempts to reach it at start, in milliseconds. */
const START_PAUSES = { firstMs: 200, maxMs: 2_000 }

export interface PostgresStateOptions extends Omit<DatabaseOptions, 'continuity'> {
  /** File that records across restarts what the database acknowledged; empty: none. */
  readonly seenPath: string
  /** Interval at which events of other replicas are polled, in milliseconds. */
  readonly pollMs: number
  /** Interval at which this replica tries to lead and renews, in milliseconds. */
  readonly retryMs: number
  /** How long to wait at start for a database that cannot be reached, in milliseconds. Default: 30 seconds. */
  readonly startWaitMs?: number
  readonly clock: Clock
  readonly ids: Ids
  /** Reservations that wait to be counted. Default: the row of the pool. */
  readonly queued?: SharedPool
  /** Keys that wait to be inserted. Default: the row of the pool. */
  readonly queuedKeys?: SharedPool
  onLead(job: string, leads: boolean): void
  /** Called with the reason when the database lacks acknowledged data, and with null when it was adopted. */
  onLost(lost: string | null): void
}

/** State shared by replicas. */
export interface PostgresState {
  readonly journals: Journals
  readonly leadership: Leadership
  readonly ledgerHeads: LedgerHeads
  readonly ledgerCopies: LedgerCopies
  readonly once: OnceSets
  readonly leases: Leases
  limits(options: SharedLimitsOptions): SharedLimits
  /** Returns a secret by its name; the first replica creates it with `make`. */
  secret(name: string, make: () => string): Promise<string>
  /** Why most calls are denied now; null when they are not. */
  problem(): string | null
  /** Accepts the database as it is after a loss. Resolves with false when it has lost nothing. Rejects with StateUnreachableError. */
  adopt(): Promise<boolean>
  /** Caller must close all users of the state before. */
  close(): Promise<void>
}

export async function startPostgresState(options: PostgresStateOptions): Promise<PostgresState> {
  const { clock, ids, pollMs, retryMs, warn } = options
  const continuity = await Continuity.open({
    path: options.seenPath,
    ids,
    warn,
    onLost(why) {
      feed?.suspend()
      options.onLost(why)
    },
    onAdopted() {
      feed?.restart()
      options.onLost(null)
    },
  })
  let feed: Feed | null = null
  const database = await reach(options, continuity)
  const { schema } = database
  feed = new Feed({ database, clock, pollMs, warn })
  // The check at start precedes the feed.
  if (continuity.lost !== null) feed.suspend()
  const serverClock = new ServerClock(clock)
  const counting = new Counting({ database, clock, serverClock, ids, queued: options.queued, warn })
  const onNotice = () => void feed.pull().catch(() => {})
  const election = new Election({ ...options, schema, holder: counting.owner, onNotice })
  const leaseMs = LEASE_INTERVALS * retryMs
  const live = () => beat({ database, clock, serverClock, counting, leaseMs })
  // With a database that lost data the gateway starts as well, and denies every call until an operator adopts it.
  if (continuity.lost === null) await live()
  const stopLiving = clock.every(retryMs, () => void live().catch(() => {}))
  const once = new SharedOnceSets({ database, clock, serverClock, ids, queued: options.queuedKeys })
  election.run(KEEPING, (epoch, signal) => keep(database, epoch, { signal, clock, everyMs: retryMs, warn }))
  election.look()
  return {
    journals: sharedJournals({ database, feed, clock, ids }),
    leadership: election,
    ledgerHeads: ledgerHeads(database),
    ledgerCopies: ledgerCopies(database),
    once,
    leases: postgresLeases(database, { clock, ids }),
    limits: (limits) => new SharedLimits(counting, limits),
    secret: (name, make) => readSecret(database, name, make),
    problem: () => problemOf(continuity, feed),
    adopt: () => adopted(continuity, database),
    async close() {
      stopLiving()
      await election.close()
      await once.close()
      await counting.close()
      await feed.close()
      // Remaining holds have no owner from now on.
      await database.rows(`DELETE FROM ${schema}.replica WHERE id = $1`, [counting.owner]).catch(() => {})
      await database.close()
      await continuity.close()
    },
  }
}

async function adopted({ lost }: Continuity, database: Database): Promise<boolean> {
  if (lost === null) return false
  await database.adopt()
  return true
}

function problemOf({ lost }: Continuity, { health, awayMs }: Feed): string | null {
  if (lost !== null) return `${lost}: see "plat state adopt"`
  return health !== 'ok' || awayMs >= AWAY_AFTER_MS ? 'the state database cannot be read' : null
}

/** Opens the database; while it cannot be reached, tries again with backoff for a bounded time. */
async function reach(options: PostgresStateOptions, continuity: Continuity): Promise<Database> {
  const { clock, ids, warn, startWaitMs = START_WAIT_MS } = options
  const backoff = new Backoff({ ...START_PAUSES, ids })
  const endsAt = clock.monotonic() + startWaitMs
  for (let failures = 0; ; failures++) {
    try {
      return await Database.open({ ...options, continuity })
    } catch (error) {
      const pauseMs = backoff.pauseMs(failures)
      if (!(error instanceof StateUnreachableError) || clock.monotonic() + pauseMs > endsAt) throw error
      // Logs only the first of consecutive failures.
      if (failures === 0) warn(`${error.message}; it is tried again for ${startWaitMs / 1000} seconds`)
      // Nothing else may keep a process alive that has no connection yet.
      const letEnd = keepAlive()
      await new Promise<void>((resolve) => clock.after(pauseMs, resolve))
      letEnd()
    }
  }
}

function sharedJournals(parts: JournalParts): Journals {
  const { feed } = parts
  return {
    shared: true,
    open: (spec) => openPostgresJournal(spec, parts),
    async catchUp() {
      await feed.pull()
      // A follower was dropped, or the database lacks acknowledged data.
      if (feed.health !== 'ok') throw new StateUnreachableError('what other replicas wrote is not known here')
    },
  }
}

async function readSecret(database: Database, name: string, make: () => string): Promise<string> {
  const { schema } = database
  const insert = `INSERT INTO ${schema}.secret (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING`
  await database.again(insert, [name, make()], EVEN_LOST)
  const read = `SELECT value FROM ${schema}.secret WHERE name = $1`
  const [row] = await database.rows<{ value: string }>(read, [name], EVEN_LOST)
  return row?.value ?? ''
}

interface Beating {
  readonly database: Database
  readonly clock: Clock
  readonly serverClock: ServerClock
  readonly counting: Counting
  readonly leaseMs: number
}

/** Renews this gateway, and writes a beat that the database must still have later. */
async function beat({ database, clock, serverClock, counting, leaseMs }: Beating): Promise<void> {
  const { schema, continuity } = database
  const requestedAt = clock.monotonic()
  const before = continuity.mark
  const [row] = await database.rows<{ beat: string; at: string }>(
    `WITH alive AS (
       INSERT INTO ${schema}.replica (id, until) VALUES ($1, clock_timestamp() + $2 * interval '1 ms')
         ON CONFLICT (id) DO UPDATE SET until = EXCLUDED.until)
     SELECT beat, at FROM ${schema}.beat($3)`,
    [counting.owner, leaseMs, continuity.witness],
  )
  serverClock.saw(Number(row?.at), requestedAt)
  continuity.sawBeat(Number(row?.beat), before)
}

interface Keeping {
  readonly signal: AbortSignal
  readonly clock: Clock
  readonly everyMs: number
  warn(message: string): void
}

/** Periodic work of the leader, until another one leads. */
function keep(database: Database, epoch: number, { signal, clock, everyMs, warn }: Keeping): Promise<void> {
  const { schema } = database
  let tidiedAt = Number.NEGATIVE_INFINITY
  let busy = false
  let isFailing = false
  const turn = async () => {
    if (busy) return
    busy = true
    try {
      await database.rows(`SELECT ${schema}.sweep($1, $2)`, [KEEPING, epoch])
      isFailing = false
      if (clock.monotonic() - tidiedAt < TIDY_EVERY_MS) return
      tidiedAt = clock.monotonic()
      await database.rows(`SELECT ${schema}.tidy($1, $2)`, [KEEPING, epoch])
      await database.rows(`SELECT ${schema}.tidy_claims($1, $2)`, [KEEPING, epoch])
    } catch (error) {
      // Logs only the first of consecutive failures.
      if (!signal.aborted && !isFailing) warn(`the state database could not be swept: ${reasonOf(error)}`)
      isFailing = true
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

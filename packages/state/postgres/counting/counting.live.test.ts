import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Clock, SharedPool, systemClock, TestClock } from '@plat/core'
import { whilePaused } from '@plat/testkit/postgres/backends'
import { usePostgres } from '@plat/testkit/postgres/server'
import { until } from '@plat/testkit/until'
import type { Client } from 'pg'
import { isShort, type Limits, PoolFullError } from '../../limits/limits.ts'
import { windowOf } from '../../limits/window.ts'
import { Continuity } from '../continuity.ts'
import { Database } from '../database.ts'
import { StateUnreachableError } from '../pool.ts'
import { ids, item, NEVER, type ReplicaOptions, Replicas, takeHold } from '../testing/replicas.ts'
import { Counting } from './counting.ts'
import type { Operation } from './operation.ts'
import { ServerClock } from './server-clock.ts'

const postgres = usePostgres()
const replicas = new Replicas(postgres)
const replica = (options?: ReplicaOptions) => replicas.open(options)

const take = async (limits: Limits, key: string, cap: number, window?: string) =>
  limits.take(ids.uuid(), [item(key, cap, 1, window)], limits.now() + NEVER)

async function holdsOf(client: Client, key: string, schema = 'plat'): Promise<number> {
  const find = `SELECT count(*)::int AS many FROM ${schema}.hold WHERE items @> jsonb_build_array(jsonb_build_object('k', $1::text))`
  return (await client.query(find, [key])).rows[0].many
}

/** Returns the server processes that serve gateways. */
async function backends(client: Client, which = 'state IS NOT NULL'): Promise<readonly number[]> {
  const { rows } = await client.query(`SELECT pid FROM pg_stat_activity WHERE application_name = 'plat' AND ${which}`)
  return rows.map(({ pid }) => pid)
}

/** Waits until exactly one of them is as `which` says, and returns it. */
async function untilOneIs(client: Client, which: string): Promise<readonly number[]> {
  let found: readonly number[] = []
  const isOne = async () => {
    // Within a transaction the activity view is a snapshot.
    await client.query('SELECT pg_stat_clear_snapshot()')
    found = await backends(client, which)
    return found.length === 1
  }
  await until(isOne, `one server process with ${which}`)
  return found
}

/** Resolves with the process of the one request that waits for a lock. */
const untilOneWaits = (client: Client) => untilOneIs(client, "wait_event_type = 'Lock'")

test('a take that runs after its release leaves no hold', async () => {
  // Only counting uses the connection.
  const state = await replica({ maxConnections: 1, pollMs: NEVER, retryMs: NEVER })
  const limits = state.limits({})
  await (await takeHold(limits, 'late', 1)).release()
  await postgres.beside(async (client) => {
    const stopped = await backends(client)
    await whilePaused(stopped, async () => {
      await assert.rejects(take(limits, 'late', 10), StateUnreachableError)
      const hasTombstone = async () => (await client.query('SELECT 1 FROM plat.closed')).rowCount === 1
      await until(hasTombstone, 'the release on another connection')
      assert.equal(await holdsOf(client, 'late'), 0)
    })
    const running = async () => (await backends(client)).filter((pid) => stopped.includes(pid)).length
    await until(async () => (await running()) === 0 || (await isIdle(client, stopped)), 'the take that was sent before')
    assert.equal(await holdsOf(client, 'late'), 0)
  })
  assert.deepEqual(await limits.used('late', 'life'), { spent: 0, held: 0 })
  await replicas.close(state)
})

async function isIdle(client: Client, pids: readonly number[]): Promise<boolean> {
  const { rows } = await client.query("SELECT pid FROM pg_stat_activity WHERE state <> 'idle' AND pid = ANY ($1)", [
    pids,
  ])
  return rows.length === 0
}

const HOUR_MS = 3_600_000

/** A system clock that is off by hours. */
function skewed(ms: number): Clock {
  return {
    now: () => systemClock.now() + ms,
    monotonic: () => systemClock.monotonic(),
    after: (delay, job) => systemClock.after(delay, job),
    every: (delay, job) => systemClock.every(delay, job),
  }
}

test('a cap of 5 admits exactly 5 at gateways whose clocks differ by an hour, also after the end of the window', async () => {
  const states = await Promise.all([HOUR_MS, 0, -HOUR_MS].map((ms) => replica({ schema: 'skewed', clock: skewed(ms) })))
  const all = states.map((state) => state.limits({}))
  for (const limits of all) assert.ok(Math.abs(limits.now() - systemClock.now()) < 60_000)
  const passed = async (windowOfGateway: (limits: Limits) => string) => {
    const results = await Promise.all(
      all.flatMap((limits) => Array.from({ length: 10 }, () => take(limits, 'rate', 5, windowOfGateway(limits)))),
    )
    return results.filter((result) => !isShort(result)).length
  }
  // A window of a year: no boundary occurs during the test.
  assert.equal(await passed((limits) => windowOf(limits.now(), 86_400 * 365)), 5)
  const over = windowOf(systemClock.now() - 8 * 60_000, 60)
  const [first] = all
  assert.ok(first !== undefined)
  for (const result of [await take(first, 'rate', 5, over), await take(first, 'rate', 5, over)])
    if (!isShort(result)) await result.settle(new Map())
  await postgres.beside(async (client) => {
    const { rows } = await client.query("SELECT epoch FROM skewed.leader WHERE job = 'state'")
    const tidied = await client.query("SELECT skewed.tidy('state', $1) AS done", [rows[0]?.epoch])
    assert.equal(tidied.rows[0]?.done, true)
  })
  assert.equal(await passed(() => over), 3)
  await replicas.close(...states)
})

/** More than the number of calls of a gateway that wait for one counter. */
const BLOCKED_CALLS = 3_000

test('a counter locked by a paused transaction stops only its own calls, and leaves nothing behind', async () => {
  const clock = new TestClock(systemClock.now())
  const state = await replica({ schema: 'paused', clock })
  const limits = state.limits({})
  const again = () => clock.advance(20)
  await (await takeHold(limits, 'locked', 1)).release()
  await postgres.beside(async (client) => {
    await client.query('BEGIN')
    await client.query("SELECT 1 FROM paused.counter WHERE key = 'locked' FOR UPDATE")
    let refused = 0
    const blocked = Array.from({ length: BLOCKED_CALLS }, () =>
      assert.rejects(take(limits, 'locked', 1_000_000), StateUnreachableError).then(() => void refused++),
    )
    let isCounted = false
    void takeHold(limits, 'free', 1).then(() => {
      isCounted = true
    })
    await until(
      () => isCounted,
      'a call on another counter',
      () => clock.advance(1),
    )
    assert.equal(refused, 0)
    await until(
      () => refused === BLOCKED_CALLS,
      () => `${refused} refused`,
      again,
    )
    await Promise.all(blocked)
    await client.query('ROLLBACK')
    await clock.advance(6_000)
    let isFree = false
    void takeHold(limits, 'locked', 1).then(() => {
      isFree = true
    })
    await until(() => isFree, 'the counter after the transaction', again)
    assert.equal(await holdsOf(client, 'locked', 'paused'), 1)
  })
  assert.deepEqual(await limits.used('locked', 'life'), { spent: 0, held: 1 })
  await replicas.close(state)
})

test('a session whose reservations wait for a locked counter uses its share only, and leaves no unit behind', async () => {
  const queued = new SharedPool({ name: 'queued_counts', total: 8, shares: [6, 3] })
  const holds = new SharedPool({ name: 'open_holds', total: 8, shares: [6, 5] })
  const state = await replica({ schema: 'shares', queued })
  const limits = state.limits({ holds })
  const takeAs = (agent: string, key: string) =>
    limits.take(ids.uuid(), [item(key, 100, 1)], limits.now() + NEVER, [agent, `${agent}/s`])
  await (await takeHold(limits, 'locked', 1)).release()
  await postgres.beside(async (client) => {
    await client.query('BEGIN')
    await client.query("SELECT 1 FROM shares.counter WHERE key = 'locked' FOR UPDATE")
    const waiting = [1, 2, 3].map(() => takeAs('greedy', 'locked'))
    await assert.rejects(takeAs('greedy', 'locked'), PoolFullError)
    assert.ok(!isShort(await takeAs('modest', 'free')))
    await client.query('ROLLBACK')
    for (const hold of await Promise.all(waiting)) if (!isShort(hold)) await hold.settle(new Map())
  })
  assert.deepEqual([queued.used, holds.used], [0, 1])
  const same = ids.uuid()
  const again = () => limits.take(same, [item('free', 100, 1)], limits.now() + NEVER, ['greedy', 'greedy/s'])
  const [first, second] = [await again(), await again()]
  for (const hold of [first, second]) if (!isShort(hold)) await hold.release()
  assert.equal(holds.used, 1, 'a hold taken twice has one unit')
  await replicas.close(state)
})

test('a journal that waits for connections uses its share of them only', async () => {
  const requests = new SharedPool({ name: 'state_requests', total: 6, shares: [2] })
  const state = await replica({ schema: 'requests', maxConnections: 2, pollMs: NEVER, retryMs: NEVER, requests })
  const journal = await state.journals.open({ name: 'greedy', path: '', decode: () => null })
  await journal.append('k', [null])
  await postgres.beside(async (client) => {
    await client.query('BEGIN')
    await client.query('LOCK TABLE requests.entry IN EXCLUSIVE MODE')
    const append = (key: string) => journal.append(key, [null])
    const appends = [append('a'), append('b')]
    await until(() => requests.used === 0, 'two appends that have a connection')
    appends.push(append('c'), append('d'))
    await assert.rejects(append('e'), /too many requests are queued/)
    const other = state.limits({}).used('free', 'life')
    await client.query('ROLLBACK')
    await Promise.all([...appends, other])
  })
  assert.equal(requests.used, 0)
  await replicas.close(state)
})

/** Longer than a request waits for a connection, in milliseconds. */
const LONG_CHECK_MS = 2_500

test('a request that gave up while its connection was checked releases the connection', async () => {
  const state = await replica({ schema: 'checked', maxConnections: 1, pollMs: NEVER, retryMs: NEVER })
  const limits = state.limits({})
  await postgres.beside(async (client) => {
    await client.query('BEGIN')
    // The only connection waits for its check, and so does the second request for it.
    await client.query('LOCK TABLE checked.counter, checked.origin')
    const both = Promise.allSettled([limits.counted('a'), limits.used('b', 'life')])
    for (const pid of await untilOneWaits(client)) await client.query('SELECT pg_terminate_backend($1)', [pid])
    await sleep(LONG_CHECK_MS)
    await client.query('ROLLBACK')
    await both
  })
  await until(() => limits.used('c', 'life').then(Boolean, () => false), 'a connection')
  await replicas.close(state)
})

test('a gateway closes while a server process is paused and a counter stays locked', async () => {
  const state = await replica({ schema: 'closing', maxConnections: 1, pollMs: NEVER, retryMs: NEVER })
  const hold = await takeHold(state.limits({}), 'closing', 1)
  await postgres.beside(async (client) => {
    await client.query('BEGIN')
    await client.query('SELECT 1 FROM closing.counter FOR UPDATE')
    const settled = hold.release()
    await untilOneWaits(client)
    // The connection for leadership, once it is open.
    const idle = await untilOneIs(client, "state = 'idle'")
    await whilePaused(idle, () => replicas.close(state))
    await settled
    await client.query('ROLLBACK')
    assert.equal(await holdsOf(client, 'closing', 'closing'), 1, 'it counts as spent when the replica is gone')
  })
})

const OWED = 150_000

const settlement = (key: string): Operation => ({
  do: 'settle',
  id: key,
  ref: ids.uuid(),
  spent: { [key]: 0 },
  items: [{ k: key, w: 'life', a: 1, c: 10, e: null }],
  unsure: true,
})

test('150,000 releases owed during an outage of Postgres are bounded, and counting recovers afterwards', async () => {
  const warned: string[] = []
  const warn = (message: string) => void warned.push(message)
  const clock = systemClock
  const continuity = await Continuity.open({ path: '', ids, warn, onLost() {}, onAdopted() {} })
  const database = await Database.open({
    dsn: postgres.dsn,
    schema: 'owed',
    maxConnections: 4,
    continuity,
    warn,
  })
  const counting = new Counting({ database, clock, serverClock: new ServerClock(clock), ids, warn })
  const { owner } = counting
  await postgres.stop()
  const results = await Promise.all(Array.from({ length: OWED }, () => counting.owe(settlement('owed'))))
  assert.ok(results.every((result) => result === null))
  assert.notEqual(counting.owner, owner, 'what the old owner held counts as spent')
  assert.equal(warned.filter((message) => /settlements could not be counted/.test(message)).length, 1)
  await Promise.all(Array.from({ length: 300 }, () => counting.owe(settlement('owed'))))
  await postgres.start()
  await postgres.beside(async (client) => {
    const tombstones = async () => (await client.query('SELECT count(*)::int AS n FROM owed.closed')).rows[0].n
    await until(async () => (await tombstones()) === 300, 'what was owed last')
  })
  await counting.close()
  await database.close()
})

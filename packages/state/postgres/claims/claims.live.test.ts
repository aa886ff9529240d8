import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SharedPool, systemClock, TestClock } from '@plat/core'
import { PostgresProxy } from '@plat/testkit/postgres/proxy'
import { usePostgres } from '@plat/testkit/postgres/server'
import { until } from '@plat/testkit/until'
import { leasePromises } from '../../lease/lease.conformance.ts'
import { oncePromises } from '../../once/once.conformance.ts'
import type { OnceSets } from '../../once/once.ts'
import { Continuity } from '../continuity.ts'
import { ServerClock } from '../counting/server-clock.ts'
import { Database } from '../database.ts'
import { StateUnreachableError } from '../pool.ts'
import { ids, NEVER, type ReplicaOptions, Replicas } from '../testing/replicas.ts'
import { SharedOnceSets } from './shared-once-sets.ts'

const postgres = usePostgres()
const replicas = new Replicas(postgres)
const replica = (options: ReplicaOptions = {}) => replicas.open({ schema: 'claims', ...options })

/** Sets whose entries end by this clock instead of that of the server. */
async function setsBy(clock: TestClock): Promise<OnceSets> {
  const common = { dsn: postgres.dsn, schema: 'claims', maxConnections: 4, warn() {} }
  const continuity = await Continuity.open({ path: '', ids, warn() {}, onLost() {}, onAdopted() {} })
  const database = await Database.open({ ...common, continuity })
  const sets = new SharedOnceSets({ database, clock, serverClock: new ServerClock(clock), ids })
  return {
    set: (name, cap) => sets.set(name, cap),
    async close() {
      await sets.close()
      await database.close()
    },
  }
}

oncePromises({
  name: 'sets that gateways share',
  open: async (clock) => [await setsBy(clock), await setsBy(clock)],
})

leasePromises({
  name: 'leases that gateways share',
  async open() {
    const [one, other] = [await replica(), await replica()]
    return { replicas: [one.leases, other.leases], close: () => replicas.close(one, other) }
  },
  pass: (ms) => new Promise((resolve) => void systemClock.after(ms, resolve)),
})

test('insertions that arrive during a round trip are sent together', async () => {
  const state = await replica()
  const set = state.once.set('batched', 100_000)
  const ends = systemClock.now() + 60_000
  const before = await insertsSoFar()
  const verdicts = await Promise.all(Array.from({ length: 2_000 }, (_, n) => set.insert(`key ${n % 1_000}`, '', ends)))
  assert.equal(verdicts.filter((verdict) => verdict === 'inserted').length, 1_000)
  // Four statements of one key begin at once; the others share what follows.
  assert.ok((await insertsSoFar()) - before <= 20)
  await replicas.close(state)
})

/** Result of work, or null if it fails. */
async function attempt<T>(work: () => Promise<T> | T): Promise<T | null> {
  try {
    return await work()
  } catch {
    return null
  }
}

/** Number of statements that inserted keys. Each has a separate mark. */
async function insertsSoFar(): Promise<number> {
  const [row] = await postgres.rows('SELECT count(DISTINCT by)::integer AS count FROM claims.once')
  return Number(row?.count)
}

test('an insertion whose response was lost is repeated and finds its own row', async () => {
  const proxy = new PostgresProxy(postgres)
  const state = await replica({ dsn: proxy.dsn, pollMs: NEVER, retryMs: NEVER })
  const set = state.once.set('lost', 100)
  const ends = systemClock.now() + 60_000
  assert.equal(await set.insert('first', '', ends), 'inserted')
  proxy.loseResponses()
  assert.equal(await set.insert('second', '', ends), 'inserted')
  assert.equal(await set.insert('second', '', ends), 'taken')
  proxy.loseResponses()
  const lease = await state.leases.acquire('lost', 60_000)
  assert.ok(lease !== null)
  assert.equal(await state.leases.acquire('lost', 60_000), null)
  await replicas.close(state)
})

test('a full set refuses on every replica', async () => {
  const [one, other] = [await replica(), await replica()]
  const ends = systemClock.now() + 86_400_000
  const [first, second] = [one.once.set('full', 2), other.once.set('full', 2)]
  for (const key of ['a', 'b']) assert.equal(await first.insert(key, '', ends), 'inserted')
  const clock = new TestClock(systemClock.now())
  const counting = await replica({ clock, retryMs: NEVER, pollMs: NEVER })
  const set = counting.once.set('full', 2)
  await clock.advance(60_000)
  await until(async () => (await set.insert('c', '', 0)) === 'full', 'a count of the entries')
  assert.equal(await second.insert('a', '', ends), 'taken')
  await replicas.close(one, other, counting)
})

test('during an outage insertions and leases are refused; afterwards they succeed, entries kept', async () => {
  const state = await replica()
  const set = state.once.set('outage', 100)
  const ends = systemClock.now() + 600_000
  await set.insert('key', 'value', ends)
  await postgres.stop()
  try {
    await assert.rejects(async () => set.insert('other', '', ends), StateUnreachableError)
    await assert.rejects(async () => set.get('key'), StateUnreachableError)
    await assert.rejects(state.leases.acquire('outage', 1_000), StateUnreachableError)
  } finally {
    await postgres.start()
  }
  await until(async () => (await attempt(() => set.insert('key', '', ends))) === 'taken', 'the kept entry')
  assert.equal(await set.get('key'), 'value')
  await replicas.close(state)
})

test('the leader deletes entries and leases that are over', async () => {
  const clock = new TestClock(systemClock.now())
  const state = await replica({ schema: 'tidied', clock })
  await postgres.rows("INSERT INTO tidied.once VALUES ('k', 'old', '', 1, ''), ('k', 'new', '', 9999999999999, '')")
  await postgres.rows("INSERT INTO tidied.lease VALUES ('old', 'h', now() - interval '1 s')")
  await until(
    async () => (await postgres.rows('SELECT 1 FROM tidied.once')).length === 1,
    'the deletion of the old entry',
    () => clock.advance(1_000),
  )
  await until(async () => (await postgres.rows('SELECT 1 FROM tidied.lease')).length === 0, 'that of the old lease')
  await replicas.close(state)
})

test('a caller whose keys wait uses its share only, and leaves no unit behind', async () => {
  const queuedKeys = new SharedPool({ name: 'queued_keys', total: 6, shares: [2] })
  const state = await replica({ queuedKeys })
  const set = state.once.set('shares', 100)
  const insert = async (key: string, caller: string) => set.insert(key, '', systemClock.now() + 60_000, caller)
  await postgres.beside(async (client) => {
    await client.query('BEGIN')
    await client.query('LOCK TABLE claims.once')
    const waiting = [insert('a', 'greedy'), insert('b', 'greedy')]
    await assert.rejects(insert('c', 'greedy'), /too many keys are queued/)
    waiting.push(insert('d', 'modest'))
    await client.query('ROLLBACK')
    assert.deepEqual(await Promise.all(waiting), ['inserted', 'inserted', 'inserted'])
  })
  assert.equal(queuedKeys.used, 0)
  await replicas.close(state)
})

test('the database stores no key in plain text', async () => {
  const state = await replica()
  await state.once.set('words', 10).insert('revealing words', 'value', systemClock.now() + 60_000)
  const [row] = await postgres.rows("SELECT encode(key, 'escape') AS key FROM claims.once WHERE kind = 'words'")
  assert.ok(row !== undefined && !String(row.key).includes('revealing'))
  await replicas.close(state)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Clock, SharedPool, TestClock } from '@plat/core'
import { usePostgres } from '@plat/testkit/postgres/server'
import { Client } from 'pg'
import { oncePromises } from '../once/once.conformance.ts'
import { openPostgresOnceSets } from './once-sets.ts'
import { StateUnreachableError } from './pool.ts'

const postgres = usePostgres()

const warned: string[] = []
const open = (clock: Clock, dsn = postgres.dsn) =>
  openPostgresOnceSets({ dsn, clock, warn: (message) => void warned.push(message) })

oncePromises({
  name: 'sets in Postgres',
  open: async (clock) => Promise.all([open(clock), open(clock)]),
})

test('replicas that start together create one schema', async () => {
  await postgres.rows('DROP TABLE IF EXISTS plat_once, plat_schema')
  const clock = new TestClock()
  const replicas = await Promise.all(Array.from({ length: 5 }, () => open(clock)))
  for (const replica of replicas) await replica.close()
  assert.deepEqual(await postgres.rows('SELECT version FROM plat_schema'), [{ version: 1 }])
})

test('a schema of a later release is refused, and so is a wrong password', async () => {
  const clock = new TestClock()
  await (await open(clock)).close()
  await postgres.rows('UPDATE plat_schema SET version = 99')
  await assert.rejects(open(clock), /the state database has schema 99, and this release knows 1/)
  await postgres.rows('UPDATE plat_schema SET version = 1')
  await assert.rejects(open(clock, postgres.wrongDsn), (error: Error) => {
    assert.match(error.message, /password authentication failed/)
    assert.ok(!error.message.includes('wrong'))
    return true
  })
})

test('during an outage every query is refused; afterwards it succeeds, entries kept', async () => {
  const clock = new TestClock()
  const sets = await open(clock)
  const set = sets.set('outage', 10)
  await set.insert('key', 'value', clock.now() + 1000)
  await postgres.stop()
  await assert.rejects(async () => set.get('key'), StateUnreachableError)
  await assert.rejects(async () => set.insert('other', '', clock.now() + 1000), StateUnreachableError)
  const late = await open(clock)
  await assert.rejects(async () => late.set('outage', 10).get('key'), StateUnreachableError)
  await postgres.start()
  assert.equal(await set.get('key'), 'value')
  assert.equal(await late.set('outage', 10).get('key'), 'value')
  for (const each of [sets, late]) await each.close()
})

test('a server that does not respond in time counts as unreachable', async () => {
  const clock = new TestClock()
  const sets = await open(clock)
  const holder = new Client({ connectionString: postgres.dsn })
  await holder.connect()
  await holder.query('BEGIN')
  await holder.query('LOCK TABLE plat_once')
  await assert.rejects(async () => sets.set('locked', 10).insert('key', '', clock.now() + 1000), StateUnreachableError)
  await holder.query('ROLLBACK')
  await holder.end()
  assert.equal(await sets.set('locked', 10).insert('key', '', clock.now() + 1000), 'inserted')
  await sets.close()
})

test('a caller whose requests wait for the database uses its share of them only', async () => {
  const clock = new TestClock()
  const requests = new SharedPool({ name: 'set_requests', total: 6, shares: [2] })
  const sets = await openPostgresOnceSets({ dsn: postgres.dsn, clock, requests, warn: () => {} })
  const set = sets.set('shared', 10)
  const insert = async (key: string, caller: string) => set.insert(key, '', clock.now() + 1000, caller)
  await postgres.beside(async (client) => {
    await client.query('BEGIN')
    await client.query('LOCK TABLE plat_once')
    const waiting = [insert('a', 'greedy'), insert('b', 'greedy')]
    await assert.rejects(insert('c', 'greedy'), /too many requests are queued/)
    waiting.push(insert('d', 'modest'))
    assert.equal(requests.usedBy('modest'), 1)
    await client.query('ROLLBACK')
    assert.deepEqual(await Promise.all(waiting), ['inserted', 'inserted', 'inserted'])
  })
  assert.equal(requests.used, 0)
  await sets.close()
})

test('a sweep deletes expired entries and counts: a full set refuses', async () => {
  const clock = new TestClock()
  await (await open(clock)).close()
  await postgres.rows('DELETE FROM plat_once')
  const first = await open(clock)
  const set = first.set('swept', 2)
  for (const key of ['a', 'b']) await set.insert(key, '', clock.now() + 1000)
  await first.close()
  const second = await open(clock)
  assert.equal(await second.set('swept', 2).insert('c', '', clock.now() + 1000), 'full')
  await second.close()
  // Longer than the grace period for clocks that are behind.
  await clock.advance(11 * 60_000)
  const third = await open(clock)
  assert.deepEqual(await postgres.rows('SELECT count(*)::integer AS left FROM plat_once'), [{ left: 0 }])
  assert.equal(await third.set('swept', 2).insert('c', '', clock.now() + 1000), 'inserted')
  await third.close()
})

test('the database stores no key in plain text', async () => {
  const clock = new TestClock()
  const sets = await open(clock)
  await sets.set('words', 10).insert('revealing words', 'value', clock.now() + 1000)
  const [row] = await postgres.rows("SELECT encode(key, 'escape') AS key FROM plat_once WHERE kind = 'words'")
  assert.ok(!String(row?.key).includes('telling'))
  await sets.close()
})

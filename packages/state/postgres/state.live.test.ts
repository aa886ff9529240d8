import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock, TestClock } from '@plat/core'
import { usePostgres } from '@plat/testkit/postgres/server'
import { until } from '@plat/testkit/until'
import { journalPromises, type Sample } from '../journal.conformance.ts'
import type { OpenJournal } from '../journal.ts'
import { limitsPromises } from '../limits/limits.conformance.ts'
import { type Hold, type HoldItem, isShort } from '../limits/limits.ts'
import { StateUnreachableError } from './pool.ts'
import type { PostgresState } from './state.ts'
import {
  appendBeside,
  ids,
  item,
  journalOf,
  NEVER,
  type ReplicaOptions,
  Replicas,
  sample,
  takeHold,
} from './testing/replicas.ts'

/** A leader cleans up by the server's clock: a counter of another year would be out of use. */
function clockOfNow(): TestClock {
  return new TestClock(systemClock.now())
}
const postgres = usePostgres()
const replicas = new Replicas(postgres)
const replica = (options?: ReplicaOptions) => replicas.open(options)
const close = (...states: readonly PostgresState[]) => replicas.close(...states)

let journals = 0
journalPromises({
  name: 'Postgres',
  async open() {
    const state = await replica({ pollMs: NEVER })
    return { journal: await journalOf(state, `conformance-${journals}`), close: () => close(state) }
  },
  async reset() {
    journals++
  },
})

const still = new TestClock()
let schemas = 0
limitsPromises({
  name: 'Postgres',
  open: async () => (await replica({ schema: `limits_${++schemas}`, clock: still, retryMs: NEVER })).limits({}),
})

/** Numbers of every event passed on, in order. */
function followed(journal: OpenJournal<Sample>): { readonly seen: number[]; readonly ended: Promise<void> } {
  const seen: number[] = []
  const ended = journal.follow(0, ({ event }) => void seen.push(event.n), new AbortController().signal)
  return { seen, ended }
}

for (const [how, options] of [
  ['at the server’s word', { pollMs: NEVER, retryMs: 100 }],
  ['by looking', { pollMs: 20, retryMs: NEVER }],
] as const) {
  test(`replicas receive what another one appends ${how}`, async () => {
    // Shows D3.state.stateBackend.pollMillis.
    const [one, other] = [await replica(options), await replica(options)]
    const name = `notify-${options.pollMs}`
    const { seen } = followed(await journalOf(other, name))
    const journal = await journalOf(one, name)
    await journal.append('a', [sample(1), sample(2)])
    await until(() => seen.length === 2, 'both events')
    await journal.append('b\u0000\ud800"\\', [sample(3)])
    await until(() => seen.length === 3, 'the third')
    const keys: string[] = []
    for await (const { key } of (await journalOf(other, name)).read(0)) keys.push(key)
    assert.deepEqual(
      [seen, keys],
      [
        [1, 2, 3],
        ['a', 'a', 'b\u0000\ud800"\\'],
      ],
    )
    await close(one, other)
  })
}

test('an event that is committed late is delivered in order, before later ones', async () => {
  const [one, other] = [await replica(), await replica()]
  const { seen } = followed(await journalOf(other, 'late'))
  const journal = await journalOf(one, 'late')
  await journal.append('a', [sample(1)])
  await postgres.beside(async (client) => {
    await client.query('BEGIN')
    await appendBeside(client, 'late', 2)
    const appended = journal.append('a', [sample(3)])
    await until(() => seen.length === 1, 'the first event')
    await client.query('COMMIT')
    await appended
  })
  await until(() => seen.length === 3, 'every event')
  assert.deepEqual(seen, [1, 2, 3])
  await close(one, other)
})

test('an append whose connection breaks before the response happens once', async () => {
  const state = await replica({ retryMs: NEVER })
  const journal = await journalOf(state, 'broken')
  await journal.append('a', [sample(1)])
  await postgres.beside(async (client) => {
    await client.query('BEGIN')
    await client.query("SELECT seq FROM plat.journal WHERE name = 'broken' FOR UPDATE")
    const appended = journal.append('a', [sample(2)], 1)
    const waiting = `SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%append(%'`
    // Within a transaction the activity view is a snapshot.
    const looked = () => client.query('SELECT pg_stat_clear_snapshot()')
    await until(async () => (await client.query(waiting)).rowCount === 1, 'an append that waits', looked)
    await client.query(`SELECT pg_terminate_backend(pid) FROM (${waiting}) AS waiting`)
    await client.query('COMMIT')
    assert.equal(await appended, 2)
    // The same when it was committed and only the response was lost.
    const attempt = ids.uuid()
    const twice = [await appendBeside(client, 'broken', 3, attempt), await appendBeside(client, 'broken', 3, attempt)]
    assert.deepEqual(twice[0], twice[1])
    assert.partialDeepStrictEqual(twice, Array(2).fill([{ head: '3', first: '3', version: '3' }]))
  })
  assert.equal(await journal.append('a', [sample(4)], 2), 'conflict')
  assert.equal(await journal.append('a', [sample(4)], 3), 4)
  await close(state)
})

test('during an outage appends are refused and health reports it; afterwards nothing is missing', async () => {
  const clock = clockOfNow()
  const [one, other] = [await replica({ clock }), await replica()]
  const [journal, others] = [await journalOf(one, 'outage'), await journalOf(other, 'outage')]
  const { seen } = followed(journal)
  await journal.append('a', [sample(1)])
  const limits = one.limits({})
  const hold = await takeHold(limits, 'outage', 7)
  await postgres.stop()
  await assert.rejects(journal.append('a', [sample(2)]), StateUnreachableError)
  await assert.rejects(async () => limits.take('2', [item('outage', 10, 1)], NEVER), StateUnreachableError)
  await hold.settle(new Map([['outage', 3]]))
  assert.equal(journal.health, 'ok')
  await clock.advance(6_000)
  assert.equal(journal.health, 'unreachable')
  await postgres.start()
  // An append without a response may or may not have happened.
  await until(() => others.append('a', [sample(3)], 1).then(Boolean, () => false), 'the other replica')
  await until(
    () => journal.health === 'ok' && seen.length === 2,
    'the event of the other replica',
    () => clock.advance(250),
  )
  assert.deepEqual(seen, [1, 3])
  const spent = async () => (await limits.used('outage', 'life')).spent
  await until(
    async () => (await spent()) === 3,
    'what was settled meanwhile',
    () => clock.advance(250),
  )
  await close(one, other)
})

test('an event that this release does not know is not skipped', async () => {
  const state = await replica()
  const journal = await journalOf(state, 'unknown')
  const { ended } = followed(journal)
  const gone = assert.rejects(ended, /event 1 of journal unknown cannot be read: unknown event/)
  const foreign = await state.journals.open({ name: 'unknown', path: '', decode: (event) => event })
  await foreign.append('a', [{ t: 'from the future' }])
  await gone
  assert.equal(journal.health, 'unreachable')
  await assert.rejects(async () => {
    for await (const _ of journal.read(0)) assert.fail('it was read')
  }, /unknown event/)
  await close(state)
})

test('a follower lost in its first poll does not affect another one', async () => {
  const state = await replica()
  const [journal, other] = [await journalOf(state, 'lost'), await journalOf(state, 'other')]
  const foreign = await state.journals.open({ name: 'lost', path: '', decode: (event) => event })
  await foreign.append('a', [{ t: 'from the future' }])
  await other.append('a', [sample(1)])
  // Both in one poll, which continues after losing the first.
  const [{ ended }, { seen }] = [followed(journal), followed(other)]
  await assert.rejects(ended, /event 1 of journal lost cannot be read/)
  await until(() => seen.length === 1, 'the event of the other')
  await close(state)
})

test('replicas that take from one cap concurrently never pass it and use all of it', async () => {
  const three = await Promise.all([replica(), replica(), replica()])
  const reported: number[] = []
  const onSpent = (_: HoldItem, spent: number, before: number) => void reported.push(spent - before)
  const limits = three.map((state) => state.limits({ onSpent }))
  const answers = await Promise.all(
    limits.flatMap((each) =>
      Array.from({ length: 300 }, () =>
        each.take(ids.uuid(), [item('cap', 700, 7), item('other', 9000, 1)], NEVER * 1000),
      ),
    ),
  )
  const holds = answers.filter((answer): answer is Hold => !isShort(answer))
  assert.equal(holds.length, 100)
  assert.ok(answers.every((answer) => !isShort(answer) || (answer.key === 'cap' && answer.left < 7)))
  await Promise.all(holds.map((hold) => hold.settle(new Map([['cap', 2]]))))
  for (const each of limits) assert.deepEqual(await each.used('cap', 'life'), { spent: 200, held: 0 })
  assert.deepEqual(
    (await limits[0]?.counted('cap'))?.map(({ key, spent }) => [key, spent]),
    [['cap', 200]],
  )
  assert.deepEqual(reported.toSorted(), [...Array(100).fill(1), ...Array(100).fill(2)])
  await close(...three)
})

test('holds of a lost replica count as spent in full, until they are settled after all', async () => {
  // Its clock does not advance: it leads without ever renewing.
  const gone = await replica({ schema: 'gone', clock: clockOfNow() })
  const alive = await replica({ schema: 'gone' })
  const hold = await takeHold(gone.limits({}), 'gone', 5)
  const limits = alive.limits({})
  const used = () => limits.used('gone', 'life')
  await until(async () => (await used()).held === 0, 'the leader')
  assert.deepEqual(await used(), { spent: 5, held: 0 })
  const own = await takeHold(limits, 'gone', 10)
  assert.deepEqual(await used(), { spent: 5, held: 10 })
  await hold.settle(new Map([['gone', 1]]))
  await own.release()
  assert.deepEqual(await used(), { spent: 1, held: 0 })
  await close(gone, alive)
})

test('one replica leads; when its connection breaks another one does, and further writes of the first are refused', async () => {
  const led: string[] = []
  const schema = 'led'
  const named = (name: string) =>
    replica({ schema, onLead: (job, leads) => void (leads && led.push(`${name} ${job}`)) })
  const first = await named('first')
  const epochs: number[] = []
  const run = (state: PostgresState) =>
    state.leadership.run('work', async (epoch, signal) => {
      epochs.push(epoch)
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    })
  run(first)
  await until(() => led.length === 2, 'the first leader')
  const second = await named('second')
  run(second)
  await postgres.beside(async (client) => {
    const leader = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2"
    for (const times of [1, 2, 3]) {
      await client.query(`SELECT pg_terminate_backend(pid) FROM (SELECT DISTINCT pid FROM (${leader}) AS l) AS leaders`)
      await until(() => epochs.length > times, 'the next leader')
    }
    const refused = await client.query("SELECT led.sweep('state', 1), led.tidy('state', 1)")
    assert.deepEqual(refused.rows, [{ sweep: false, tidy: false }])
  })
  assert.deepEqual(
    epochs,
    epochs.toSorted((a, b) => a - b),
  )
  assert.equal(new Set(epochs).size, epochs.length)
  await close(first)
  await until(() => led.at(-1)?.startsWith('second') === true, 'the second replica alone')
  await close(second)
})

test('a secret is created once for all replicas, and a refusal at start is reported in one line', async () => {
  const [one, other] = await Promise.all([replica(), replica()])
  const secrets = await Promise.all([one, other].map((state, at) => state.secret('seal', () => `made by ${at}`)))
  assert.equal(new Set(secrets).size, 1)
  await close(one, other)
  await postgres.beside((client) => client.query('UPDATE plat.version SET version = 99'))
  await assert.rejects(
    replica(),
    /the state database refuses: the state database has schema 99, and this release knows 6/,
  )
  await postgres.beside((client) => client.query('UPDATE plat.version SET version = 6'))
})

test('a start waits a bounded time for a database that cannot be reached, and not for one that refuses', async () => {
  const before = replicas.warned.length
  await assert.rejects(replica({ dsn: postgres.wrongDsn, startWaitMs: NEVER }), /^Error: the state database refuses: /)
  assert.equal(replicas.warned.length, before)
  const away = { dsn: postgres.dsnAt('/nowhere'), startWaitMs: 1_000 }
  await assert.rejects(replica(away), /^Error: the state database cannot be reached: /)
  assert.equal(replicas.warned.length, before + 1)
  assert.match(
    replicas.warned.at(-1) ?? '',
    /^the state database cannot be reached: .*; it is tried again for 1 seconds$/,
  )
  await postgres.stop()
  const waiting = replica({ startWaitMs: NEVER })
  await until(() => replicas.warned.length === before + 2, 'the first failure')
  await postgres.start()
  await close(await waiting)
})

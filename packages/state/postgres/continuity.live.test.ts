import assert from 'node:assert/strict'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { systemClock, TestClock } from '@plat/core'
import { usePostgres } from '@plat/testkit/postgres/server'
import { until } from '@plat/testkit/until'
import type { Client } from 'pg'
import type { Sample } from '../journal.conformance.ts'
import type { OpenJournal } from '../journal.ts'
import { StateUnreachableError } from './pool.ts'
import type { PostgresState } from './state.ts'
import {
  appendBeside,
  item,
  journalOf,
  NEVER,
  type ReplicaOptions,
  Replicas,
  sample,
  takeHold,
} from './testing/replicas.ts'

const postgres = usePostgres()
const replicas = new Replicas(postgres)
const replica = (options?: ReplicaOptions) => replicas.open(options)
const close = (...states: readonly PostgresState[]) => replicas.close(...states)

/** Follows a journal and starts over when required; returns the events it knows now. */
function known(journal: OpenJournal<Sample>): readonly number[] {
  const events: number[] = []
  const stop = new AbortController()
  void journal.follow(
    0,
    ({ event }) => void events.push(event.n),
    stop.signal,
    (entries) => void events.splice(0, events.length, ...entries.map(({ event }) => event.n)),
  )
  return events
}

/** Removes events of a journal behind a snapshot, as if every replica except the followers of the test had read them. */
async function coverBeside(journal: string): Promise<void> {
  await postgres.beside(async (client) => {
    await client.query('BEGIN')
    await appendBeside(client, journal, 3)
    await client.query("SELECT plat.compact($1, 3, 0, '{a}', '{3}', $2)", [journal, ['{"t":"sample","n":30}']])
    await client.query('DELETE FROM plat.entry WHERE journal = $1 AND covered_at IS NOT NULL', [journal])
    await appendBeside(client, journal, 4)
    await client.query('COMMIT')
  })
}

test('a replica that missed events behind a snapshot rereads the journal', async () => {
  const clock = new TestClock(systemClock.now())
  const [asleep, awake] = [await replica({ clock }), await replica()]
  const [slow, quick] = [await journalOf(asleep, 'slept'), await journalOf(awake, 'slept')]
  const seen: number[] = []
  const replaced: number[][] = []
  const stop = new AbortController()
  const following = slow.follow(
    0,
    ({ event }) => void seen.push(event.n),
    stop.signal,
    (entries) => void replaced.push(entries.map(({ event }) => event.n)),
  )
  const again = () => clock.advance(100)
  await quick.append('a', [sample(1)])
  await until(() => seen.length === 1, 'the first event', again)
  await quick.append('a', [sample(2)])
  await quick.compact(2, [{ key: 'a', version: 2, event: sample(20) }])
  await until(() => seen.length === 2, 'what the snapshot covers', again)
  await coverBeside('slept')
  await until(() => replaced.length === 1, 'the whole journal', again)
  await quick.append('a', [sample(5)])
  await until(() => seen.length === 3 && slow.health === 'ok', 'the next event', again)
  assert.deepEqual([seen, replaced], [[1, 2, 5], [[30, 4]]])
  stop.abort()
  await following
  await close(asleep, awake)
})

test('a follower that cannot start over reports it, and its journal stays unreachable', async () => {
  const clock = new TestClock(systemClock.now())
  const [asleep, awake] = [await replica({ clock }), await replica()]
  const [slow, quick] = [await journalOf(asleep, 'stuck'), await journalOf(awake, 'stuck')]
  const seen: number[] = []
  const ended = slow.follow(0, ({ event }) => void seen.push(event.n), new AbortController().signal)
  await quick.append('a', [sample(1), sample(2)])
  await until(
    () => seen.length === 2,
    'both events',
    () => clock.advance(100),
  )
  let hasEnded = false
  const gone = assert.rejects(ended, /journal stuck cannot be read: events were missed: update or restart/)
  void gone.finally(() => {
    hasEnded = true
  })
  await coverBeside('stuck')
  await until(
    () => hasEnded,
    'the end',
    () => clock.advance(100),
  )
  await gone
  assert.equal(slow.health, 'unreachable')
  await clock.advance(100)
  assert.equal(slow.health, 'unreachable')
  await close(asleep, awake)
})

const outOfTime = /gone back in time/

test('after the database went back in time every replica refuses until an operator adopts it', async () => {
  const seenPath = path.join(mkdtempSync(path.join(tmpdir(), 'plat-seen-')), 'seen.json')
  const lost: (string | null)[] = []
  // Without heartbeats only its own writes reveal the loss.
  const one = await replica({ seenPath, retryMs: NEVER, onLost: (why) => void lost.push(why) })
  const other = await replica()
  const [journal, others] = [await journalOf(one, 'back'), await journalOf(other, 'back')]
  const [events, othersEvents] = [known(journal), known(others)]
  await journal.append('a', [sample(1)])
  await until(() => othersEvents.length === 1, 'the first event')
  await postgres.save()
  await until(() => journal.append('a', [sample(2)]).then(Boolean, () => false), 'the second event')
  const limits = other.limits({})
  await (await takeHold(limits, 'back', 7)).settle(new Map([['back', 7]]))
  await until(() => othersEvents.length === 2, 'the second event at the other replica')
  // The copy lacks a heartbeat of the other replica: every copy in use is older than that.
  const beats = async () => (await postgres.rows('SELECT max(beat) AS beat FROM plat.witness'))[0]?.beat
  const last = await beats()
  await until(async () => (await beats()) !== last, 'a heartbeat')
  await postgres.restore()
  // Neither the first request after the restore nor any later one succeeds.
  for (let times = 0; times < 20; times++) {
    await assert.rejects(journal.append('a', [sample(3)]), StateUnreachableError)
    await assert.rejects(
      async () => limits.take(`back/${times}`, [item('back', 1000, 1)], limits.now() + 1000),
      StateUnreachableError,
    )
  }
  await until(() => journal.health === 'unreachable' && others.health === 'unreachable', 'both replicas')
  await until(() => outOfTime.test(one.problem() ?? '') && outOfTime.test(other.problem() ?? ''), 'the reason')
  await close(one)
  const again = await replica({ seenPath })
  assert.match(again.problem() ?? '', outOfTime, 'a restart does not forget')
  const fresh = await replica()
  assert.match(fresh.problem() ?? '', outOfTime, 'a new replica finds what the others found')
  assert.equal(await again.adopt(), true)
  await until(() => others.health === 'ok' && other.problem() === null && fresh.problem() === null, 'every replica')
  assert.deepEqual([events, othersEvents], [[1, 2], [1]], 'what the database has now')
  assert.equal(await others.append('a', [sample(4)], 1), 2)
  assert.deepEqual(await limits.used('back', 'life'), { spent: 0, held: 0 })
  assert.equal(await again.adopt(), false)
  assert.equal(lost.length, 1)
  await close(again, other, fresh)
})

/** Removes the last event of a journal and appends others in its place. */
async function fork(client: Client, journal: string, events: readonly number[]): Promise<void> {
  await client.query('DELETE FROM plat.entry WHERE journal = $1 AND seq = 2', [journal])
  await client.query(
    'UPDATE plat.journal SET seq = 1, mark = (SELECT mark FROM plat.entry WHERE journal = $1) WHERE name = $1',
    [journal],
  )
  for (const n of events) await appendBeside(client, journal, n)
}

test('a journal that lost its end and grew again is detected, however far it has grown', async () => {
  const state = await replica({ retryMs: NEVER })
  const journal = await journalOf(state, 'forked')
  known(journal)
  await journal.append('a', [sample(1), sample(2)])
  await postgres.beside(async (client) => {
    await client.query('BEGIN')
    await fork(client, 'forked', [12, 13, 14])
    await client.query('COMMIT')
  })
  await until(() => journal.health === 'unreachable', 'the fork')
  await assert.rejects(journal.append('a', [sample(5)]), outOfTime)
  await until(() => outOfTime.test(state.problem() ?? ''), 'the reason')
  await state.adopt()
  await until(() => journal.health === 'ok', 'the adoption')
  await close(state)
})

test('an append to a journal that lost an event is not acknowledged, even as the first request after the loss', async () => {
  for (const [name, after] of [
    ['cut', []],
    ['grown', [12]],
  ] as const) {
    const state = await replica({ pollMs: NEVER, retryMs: NEVER })
    const journal = await journalOf(state, name)
    const events = known(journal)
    await journal.append('a', [sample(1), sample(2)])
    assert.deepEqual(events, [1, 2])
    await postgres.beside((client) => fork(client, name, after))
    await assert.rejects(journal.append('a', [sample(3)]), outOfTime)
    assert.equal(await state.adopt(), true)
    await close(state)
  }
})

test('a replica that detects a loss while an operator adopts the database does not undo the adoption', async () => {
  const state = await replica({ retryMs: NEVER })
  const journal = await journalOf(state, 'adopted')
  const events = known(journal)
  await journal.append('a', [sample(1), sample(2)])
  await until(() => events.length === 2, 'both events')
  await postgres.beside(async (client) => {
    await client.query('BEGIN')
    const [origin] = (await client.query('SELECT id, epoch FROM plat.origin FOR UPDATE')).rows
    await postgres.beside((forking) => fork(forking, 'adopted', [12]))
    // It has read the row and waits to record the loss.
    const isWriting = async () => {
      await client.query('SELECT pg_stat_clear_snapshot()')
      const find =
        "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'UPDATE%origin SET lost%' AND wait_event_type = 'Lock'"
      return (await client.query(find)).rowCount === 1
    }
    await until(isWriting, 'the loss')
    await client.query('SELECT plat.adopt($1, $2)', [origin.id, origin.epoch])
    await client.query('COMMIT')
  })
  await until(() => state.problem() === null && journal.health === 'ok', 'the adoption')
  assert.deepEqual(events, [1, 12])
  assert.deepEqual(await postgres.rows('SELECT lost FROM plat.origin'), [{ lost: null }])
  await close(state)
})

test('the same database with only an older beat counts as lost', async () => {
  const schema = 'beaten'
  const state = await replica({ schema, retryMs: 20 })
  // Its heartbeats show that the replica has seen more than a few.
  const beat = async () => Number((await postgres.rows(`SELECT beat FROM ${schema}.witness`))[0]?.beat)
  await until(async () => (await beat()) > 3, 'heartbeats')
  await postgres.rows(`UPDATE ${schema}.witness SET beat = 1`)
  await until(() => outOfTime.test(state.problem() ?? ''), 'the reason')
  await state.adopt()
  await until(() => state.problem() === null, 'the adoption')
  await close(state)
})

test('a replica whose database is replaced by another one denies, and does not modify the other one', async () => {
  const seenPath = path.join(mkdtempSync(path.join(tmpdir(), 'plat-seen-')), 'seen.json')
  await close(await replica({ seenPath, schema: 'mine' }))
  const settled = await replica({ schema: 'foreign' })
  const stranger = await replica({ seenPath, schema: 'foreign' })
  assert.match(stranger.problem() ?? '', /another one than before/)
  await settled.secret('s', () => 'x')
  assert.equal(settled.problem(), null)
  assert.equal(await stranger.adopt(), true)
  await until(() => stranger.problem() === null, 'the adoption')
  await until(() => settled.problem() === null, 'the replicas that were there')
  await close(settled, stranger)
})

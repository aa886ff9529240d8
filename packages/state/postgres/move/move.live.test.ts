import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemClock } from '@plat/core'
import { tempFolder } from '@plat/testkit/local'
import { usePostgres } from '@plat/testkit/postgres/server'
import { openFileJournal } from '../../file-journal.ts'
import { readJournalFile } from '../../journal-file.ts'
import { moveStateToPostgres } from '../../postgres-state.ts'
import { journalOf, Replicas, sample } from '../testing/replicas.ts'
import type { MovableState } from './move.ts'

const postgres = usePostgres()
const replicas = new Replicas(postgres)

let schemas = 0
const newSchema = () => `moved_${++schemas}`

const state: MovableState = {
  journals: [
    {
      name: 'first',
      seq: 7,
      events: [
        { key: 'a', version: 3, at: 10, event: { t: 'sample', n: 1 } },
        { key: 'b \0 ä', version: 1, at: 11, event: { t: 'sample', n: 2, text: 'nul \0, half \ud800' } },
        { key: 'a', version: 4, at: 12, event: { t: 'sample', n: 3 } },
      ],
    },
    { name: 'empty', seq: 0, events: [] },
    {
      name: 'long',
      seq: 2_500,
      events: Array.from({ length: 2_500 }, (_, n) => ({
        key: `key ${n % 100}`,
        version: Math.floor(n / 100) + 1,
        at: n,
        event: { t: 'sample', n },
      })),
    },
  ],
  counters: [
    { key: 'usd/session/x', window: 'life', spent: 7, usedAt: systemClock.now() },
    { key: 'rate/r', window: `${Math.floor(systemClock.now() / 1000)}+100000`, spent: 2, usedAt: systemClock.now() },
  ],
  secrets: [{ name: 'seal-key', value: 'secret' }],
}

const move = (
  schema: string,
  options: { isDry?: boolean; state?: MovableState; onStep?: (step: string) => void } = {},
) => moveStateToPostgres({ dsn: postgres.dsn, schema, state, zone: 'UTC', isDry: false, ...options })

const outcomes = (moved: Awaited<ReturnType<typeof move>>) => moved.map(({ kind, outcome }) => `${kind} ${outcome}`)
const ALL = ['first moved', 'empty none', 'long moved', 'counters moved', 'seal-key moved']
const SAME = ['first same', 'empty none', 'long same', 'counters same', 'seal-key same']

test('moved state is what replicas read, and versions, counters and secrets go on from it', async () => {
  const schema = newSchema()
  assert.deepEqual(outcomes(await move(schema)), ALL)
  const replica = await replicas.open({ schema })
  const journal = await journalOf(replica, 'first')
  const entries = await Array.fromAsync(journal.read(0))
  assert.deepEqual(
    entries.map(({ key, version, at, event }) => [key, version, at, event.n]),
    [
      ['a', 3, 10, 1],
      ['b \0 ä', 1, 11, 2],
      ['a', 4, 12, 3],
    ],
  )
  assert.equal(await journal.append('a', [sample(4)], 3), 'conflict')
  assert.equal(await journal.append('a', [sample(4)], 4), 5)
  assert.equal((await Array.fromAsync((await journalOf(replica, 'long')).read(0))).length, 2_500)
  assert.deepEqual(await replica.limits({}).used('usd/session/x', 'life'), { spent: 7, held: 0 })
  assert.equal(await replica.secret('seal-key', () => 'another'), 'secret')
  await replicas.close(replica)
})

test('a move that is interrupted at any step is repeated with the same result, and a complete one changes nothing', async () => {
  const steps: string[] = []
  await move(newSchema(), { onStep: (step) => void steps.push(step) })
  assert.ok(steps.includes('write long') && steps.includes('verify counters'))
  for (const broken of steps) {
    const schema = newSchema()
    const interrupt = (step: string) => {
      if (step === broken) throw new Error(`interrupted at ${step}`)
    }
    await assert.rejects(move(schema, { onStep: interrupt }), /nothing was moved, or it is not known: interrupted at/)
    const isDone = broken === 'end'
    const [row] = await postgres.rows(`SELECT count(*)::integer AS rows FROM ${schema}.entry`)
    assert.equal(row?.rows, isDone ? 2_503 : 0, broken)
    assert.deepEqual(outcomes(await move(schema)), isDone ? SAME : ALL, broken)
    assert.deepEqual(outcomes(await move(schema)), SAME, broken)
  }
})

test('other state of a kind is refused before anything is written, and so is a database in use', async () => {
  const schema = newSchema()
  await move(schema, { state: { ...state, journals: [], secrets: [] } })
  const [first] = state.journals
  assert.ok(first !== undefined)
  const changed = first.events.map((event) => (event.at === 12 ? { ...event, at: 13 } : event))
  const more = { ...state, counters: [{ key: 'usd/session/x', window: 'life', spent: 8, usedAt: 0 }] }
  await assert.rejects(move(schema, { state: more }), /other state already: counters;/)
  const [row] = await postgres.rows(`SELECT count(*)::integer AS rows FROM ${schema}.entry`)
  assert.equal(row?.rows, 0)
  assert.deepEqual(outcomes(await move(schema)), [
    'first moved',
    'empty none',
    'long moved',
    'counters same',
    'seal-key moved',
  ])
  const otherState = {
    ...state,
    journals: [{ ...first, events: changed }],
    secrets: [{ name: 'seal-key', value: 'x' }],
  }
  await assert.rejects(move(schema, { state: otherState }), /other state already: first, seal-key; name an empty/)
  const replica = await replicas.open({ schema })
  await assert.rejects(move(schema), /gateways use the database: stop them/)
  await replicas.close(replica)
  assert.deepEqual(outcomes(await move(schema)), SAME)
})

test('a dry run creates and writes nothing', async () => {
  const schema = newSchema()
  assert.deepEqual(outcomes(await move(schema, { isDry: true })), ALL)
  assert.deepEqual(await postgres.rows('SELECT 1 FROM pg_namespace WHERE nspname = $1', [schema]), [])
  await move(schema)
  assert.deepEqual(outcomes(await move(schema, { isDry: true })), SAME)
})

test('a window that has ended since does not make a repeated move another one', async () => {
  const schema = newSchema()
  await move(schema)
  const later = { ...state, counters: state.counters.filter(({ window }) => window === 'life') }
  assert.deepEqual(outcomes(await move(schema, { state: later })), SAME)
})

test('a journal file is read without being changed, without a torn line, and not when it is damaged', async () => {
  const path = join(tempFolder(), 'journal.jsonl')
  const decode = (event: unknown) => event
  assert.equal(readJournalFile(path, decode), null)
  const journal = await openFileJournal({ path, clock: systemClock, decode })
  await journal.append('a', [{ n: 1 }, { n: 2 }])
  await journal.append('b', [{ n: 3 }])
  await journal.compact(2, [{ key: 'a', version: 2, event: { n: 12 } }])
  await journal.append('a', [{ n: 4 }])
  await journal.close()
  const whole = await readFile(path, 'utf8')
  writeFileSync(path, `${whole}{"sum":"torn`)
  const read = readJournalFile(path, decode)
  assert.deepEqual(
    read?.events.map(({ key, version, event }) => [key, version, event]),
    [
      ['a', 2, { n: 12 }],
      ['b', 1, { n: 3 }],
      ['a', 3, { n: 4 }],
    ],
  )
  assert.equal(read?.seq, 4)
  assert.equal(await readFile(path, 'utf8'), `${whole}{"sum":"torn`)
  writeFileSync(path, `damaged\n${whole}`)
  assert.throws(() => readJournalFile(path, decode), /is damaged at byte 0/)
})

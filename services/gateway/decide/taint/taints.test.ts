import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { SharedPool, TestClock } from '@plat/core'
import { countedJournal, createMemoryJournal, type Journal, openFileJournal } from '@plat/state'
import { tempFolder } from '@plat/testkit/local'
import fc from 'fast-check'
import type { Identity } from '../../call/index.ts'
import { testIdentity } from '../../call/testing/identity.ts'
import { decodeTaintEvent, sessionIn, type TaintEvent } from './events.ts'
import { COMPACT_AFTER_EVENTS, LABELS_MAX, Taints } from './taints.ts'

const HOUR_MS = 3_600_000

interface TaintFixture {
  readonly clock: TestClock
  readonly taints: Taints
  readonly journal: Journal<TaintEvent>
  readonly changes: string[]
  readonly faults: unknown[]
  /** Number of sessions with labels. */
  count(): number
  /** Opens the journal again, as a restart does. */
  again(): Promise<Taints>
}

async function setUp(
  t: TestContext,
  given: {
    readonly journal?: (own: Journal<TaintEvent>) => Journal<TaintEvent>
    readonly clock?: TestClock
    readonly sessions?: { readonly total: number; readonly share: number }
  } = {},
): Promise<TaintFixture> {
  const clock = given.clock ?? new TestClock()
  const own = createMemoryJournal<TaintEvent>(() => clock.now())
  const journal = given.journal?.(own) ?? own
  const changes: string[] = []
  const faults: unknown[] = []
  let count = 0
  const open = async () => {
    const taints = await Taints.open({
      journal,
      clock,
      retentionMs: 24 * HOUR_MS,
      sessions: given.sessions,
      onChange: (op, label) => void changes.push(`${op} ${label}`),
      onSessions: (sessions) => {
        count = sessions
      },
      onFault: (error) => void faults.push(error),
    })
    t.after(() => taints.close())
    return taints
  }
  return { clock, taints: await open(), journal, changes, faults, count: () => count, again: open }
}

const who = (clock: TestClock, change: Partial<Identity> = {}): Identity => ({
  ...testIdentity,
  expiresAt: clock.now() + HOUR_MS,
  ...change,
})

/** A journal whose writes wait until the test releases or fails them. */
function gated() {
  const waiting: { readonly let: () => void; readonly fail: () => void }[] = []
  const journal = (own: Journal<TaintEvent>): Journal<TaintEvent> => ({
    append: async (key, events) => {
      const gate = Promise.withResolvers<void>()
      waiting.push({ let: gate.resolve, fail: () => gate.reject(new Error('the disk is full')) })
      await gate.promise
      return own.append(key, events)
    },
    read: (after) => own.read(after),
    follow: (after, apply, signal) => own.follow(after, apply, signal),
    compact: (upTo, snapshot) => own.compact(upTo, snapshot),
    health: 'ok',
  })
  return { journal, waiting }
}

test('a label is in force at once and acknowledged when it is durable; concurrent calls that add it all wait', async (t) => {
  const { journal, waiting } = gated()
  const { taints, clock, changes, count } = await setUp(t, { journal })
  const one = who(clock)
  const first = taints.add(one, ['web'])
  assert.ok(first instanceof Promise)
  assert.deepEqual(taints.labelsOf(one), ['web'])
  assert.ok(!taints.has(one, ['web']))
  const second = taints.add(one, ['web'])
  assert.ok(second instanceof Promise)
  waiting[0]?.let()
  assert.equal(await first, null)
  waiting[1]?.let()
  assert.equal(await second, null)
  assert.equal(taints.add(one, ['web']), null)
  assert.deepEqual([taints.labelsOf(one), changes[0], count()], [['web'], 'added web', 1])
})

test('a label that cannot be stored denies the response and is not added', async (t) => {
  const { journal, waiting } = gated()
  const { taints, clock, faults, count } = await setUp(t, { journal })
  const adding = taints.add(who(clock), ['web'])
  waiting[0]?.fail()
  const denial = await adding
  assert.equal(denial?.code, 'state_unavailable')
  assert.deepEqual([taints.labelsOf(who(clock)), faults.length, count()], [[], 1, 0])
})

test('a call clears labels added before it began, but none added since', async (t) => {
  // Shows D2.server.toolLabels.clearTaints.
  const { journal, waiting } = gated()
  const { taints, clock, changes } = await setUp(t, { journal })
  const one = who(clock)
  const done = async (adding: unknown) => {
    waiting.at(-1)?.let()
    await adding
  }
  await done(taints.add(one, ['web', 'mail', 'file']))
  const { turn } = taints
  taints.add(one, ['mail'])
  const clearing = taints.clear(one, { wanted: ['*'], turn })
  const meanwhile = taints.add(one, ['file'])
  assert.deepEqual(new Set(taints.labelsOf(one)), new Set(['web', 'mail', 'file']))
  waiting.at(-2)?.let()
  assert.deepEqual(await clearing, ['web', 'file'])
  assert.deepEqual(new Set(taints.labelsOf(one)), new Set(['mail', 'file']))
  await done(meanwhile)
  assert.deepEqual(new Set(taints.labelsOf(one)), new Set(['mail', 'file']))
  assert.deepEqual(changes.slice(3), ['cleared web', 'cleared file', 'added file'])
})

test('only named labels are cleared, and none if the removal cannot be stored', async (t) => {
  const { journal, waiting } = gated()
  const { taints, clock } = await setUp(t, { journal })
  const one = who(clock)
  const adding = taints.add(one, ['web', 'mail'])
  waiting[0]?.let()
  await adding
  const failing = taints.clear(one, { wanted: ['web'], turn: taints.turn })
  waiting[1]?.fail()
  await assert.rejects(failing)
  assert.deepEqual(taints.labelsOf(one), ['web', 'mail'])
  const clearing = taints.clear(one, { wanted: ['web', 'other'], turn: taints.turn })
  waiting[2]?.let()
  assert.deepEqual(await clearing, ['web'])
  assert.deepEqual(taints.labelsOf(one), ['mail'])
})

test('labels of a fork count until they are cleared, for every token of the session and after a restart', async (t) => {
  const { taints, clock, again } = await setUp(t)
  const fork = who(clock, { inheritedTaints: ['parent'], forkRoot: 'root' })
  assert.deepEqual(taints.labelsOf(fork), ['parent'])
  assert.equal(await taints.add(fork, ['web']), null)
  assert.deepEqual(new Set(taints.seen(fork).labels), new Set(['web', 'parent']))
  assert.deepEqual(new Set(await taints.clear(fork, { wanted: ['*'], turn: taints.turn })), new Set(['web', 'parent']))
  const renewed = { ...fork, jti: 'j2' }
  for (const book of [taints, await again()]) {
    assert.deepEqual(book.labelsOf(fork), [])
    assert.deepEqual(book.labelsOf(renewed), [])
    assert.deepEqual(book.labelsOf({ ...fork, session: 'other' }), ['parent'])
  }
})

test('a delegated session has the labels of its delegator, and clearing applies to the one token', async (t) => {
  const { taints, clock, again } = await setUp(t)
  const delegator = who(clock, { agent: 'a', session: 's', jti: 'ja' })
  const delegated = who(clock, {
    agent: 'b',
    session: 't',
    jti: 'jb',
    delegators: [{ namespace: 'default', agent: 'a', session: 's' }],
    chain: ['default/a'],
    inheritedTaints: ['told'],
  })
  assert.deepEqual(taints.labelsOf(delegated), ['told'])
  await taints.add(delegator, ['web'])
  await taints.add(delegator, ['mail'])
  const stranger = { namespace: 'default', agent: 'a', session: 'other' }
  for (const book of [taints, await again()]) {
    assert.deepEqual(new Set(book.labelsOf(delegated)), new Set(['told', 'web', 'mail']))
    assert.deepEqual(book.labelsOf({ ...delegated, inheritedTaints: [], delegators: [stranger] }), [])
  }
  assert.equal(await taints.add({ ...delegator, jti: 'ja2' }, ['file']), null, 'with a token that was refreshed since')
  assert.ok(taints.labelsOf(delegated).includes('file'))
  await taints.clear(delegator, { wanted: ['file'], turn: taints.turn })
  await taints.clear(delegated, { wanted: ['*'], turn: taints.turn })
  assert.deepEqual(taints.labelsOf(delegated), ['web', 'mail'])
  assert.deepEqual(new Set(taints.labelsOf({ ...delegated, jti: 'jb2' })), new Set(['told', 'web', 'mail']))
})

test('labels are kept for their retention after the last call, never less than a token lives, also across a restart', async (t) => {
  // Shows D3.dlp.taintRetentionSeconds.
  const { taints, clock, again, count } = await setUp(t)
  const short = who(clock, { session: 'short' })
  const long = who(clock, { session: 'long', expiresAt: clock.now() + 48 * HOUR_MS })
  await taints.add(short, ['web'])
  await taints.add(long, ['web'])
  await clock.advance(20 * HOUR_MS)
  taints.note(short)
  await clock.advance(23 * HOUR_MS)
  for (const book of [taints, await again()]) {
    assert.deepEqual(book.labelsOf(short), ['web'])
    assert.deepEqual(book.labelsOf(long), ['web'])
  }
  await clock.advance(3 * HOUR_MS)
  for (const book of [taints, await again()]) {
    assert.deepEqual(book.labelsOf(short), [])
    assert.deepEqual(book.labelsOf(long), ['web'])
  }
  await clock.advance(3 * HOUR_MS)
  assert.deepEqual([taints.labelsOf(long), count()], [[], 0])
  assert.deepEqual((await again()).labelsOf(long), [])
})

test('frequent calls of a session rarely write to the journal', async (t) => {
  const { taints, clock, journal } = await setUp(t)
  const expiresAt = clock.now() + 3 * HOUR_MS
  await taints.add(who(clock, { expiresAt }), ['web'])
  for (let minute = 0; minute < 121; minute++) {
    taints.note(who(clock, { expiresAt }))
    await clock.advance(60_000)
  }
  const entries = await Array.fromAsync(journal.read(0))
  assert.deepEqual(
    entries.map(({ event }) => event.t),
    ['added', 'used', 'used'],
  )
})

const steps = fc.array(
  fc.record({
    session: fc.constantFrom('s', 't'),
    op: fc.constantFrom('add', 'clear', 'use', 'wait'),
    labels: fc.subarray(['a', 'b', 'c', '*'], { minLength: 1 }),
    inherited: fc.subarray(['a', 'x']),
  }),
  { maxLength: 30 },
)

test('a restart restores the same labels, before and after compaction', async (t) => {
  await fc.assert(
    fc.asyncProperty(steps, async (list) => {
      const { taints, clock, again } = await setUp(t)
      const caller = (session: string, inheritedTaints: readonly string[]) =>
        who(clock, { session, inheritedTaints, expiresAt: Number.MAX_SAFE_INTEGER })
      for (const { session, op, labels, inherited } of list) {
        const one = caller(session, inherited)
        if (op === 'add') await taints.add(one, labels)
        else if (op === 'clear') await taints.clear(one, { wanted: labels, turn: taints.turn })
        else if (op === 'use') await taints.note(one)
        else await clock.advance(HOUR_MS)
      }
      const known = (book: Taints) =>
        ['s', 't'].map((session) => [...book.labelsOf(caller(session, ['a', 'x']))].toSorted())
      const expected = known(taints)
      assert.deepEqual(known(await again()), expected)
      await taints.compact()
      assert.deepEqual(known(await again()), expected)
    }),
    { numRuns: 60 },
  )
})

test('the journal is compacted when it has grown, without a change of state', async (t) => {
  const dir = tempFolder()
  const clock = new TestClock()
  const file = path.join(dir, 'taints.jsonl')
  const journal = await openFileJournal({ path: file, clock, decode: decodeTaintEvent })
  t.after(() => journal.close())
  const { taints, again } = await setUp(t, { journal: () => journal, clock })
  const one = who(clock)
  for (let at = 0; at < COMPACT_AFTER_EVENTS / 2; at += 100) {
    const batch = Array.from({ length: 100 }, (_, n) => ({ ...one, session: `s${n}` }))
    await Promise.all(batch.map((session) => taints.add(session, ['web'])))
    await Promise.all(batch.map((session) => taints.clear(session, { wanted: ['*'], turn: taints.turn })))
  }
  await taints.add(one, ['mail'])
  const lines = (await readFile(file, 'utf8')).trimEnd().split('\n')
  assert.ok(lines.length < 1000, `${lines.length} lines`)
  assert.deepEqual((await again()).labelsOf(one), ['mail'])
})

test('a session at its share of labels that wait to be stored is refused, another is served, and nothing is reported', async (t) => {
  const clock = new TestClock()
  const own = createMemoryJournal<TaintEvent>(() => clock.now())
  const gate = Promise.withResolvers<void>()
  const append = own.append.bind(own)
  own.append = (...given) => gate.promise.then(() => append(...given))
  const pool = new SharedPool({ name: 'journal_appends', total: 9, shares: [4, 2] })
  const journal = countedJournal(own, pool, (key) => sessionIn(key))
  const { taints, faults } = await setUp(t, { journal: () => journal, clock })
  const one = who(clock)
  const adding = ['a', 'b'].map((label) => taints.add(one, [label]))
  assert.equal((await taints.add(one, ['c']))?.code, 'backlog_full')
  const other = taints.add({ ...one, session: 'other' }, ['a'])
  gate.resolve()
  assert.deepEqual([await Promise.all(adding), await other, faults], [[null, null], null, []])
})

test('labels and sessions are bounded: calls beyond the bound are refused, and nothing is evicted', async (t) => {
  const share = 10
  const { taints, clock } = await setUp(t, { sessions: { total: 12, share } })
  const one = who(clock)
  const many = Array.from({ length: LABELS_MAX }, (_, n) => `l${n}`)
  assert.equal(await taints.add(one, many), null)
  assert.equal((await taints.add(one, ['more']))?.code, 'state_unavailable')
  const adding = Array.from({ length: share - 1 }, (_, n) => taints.add({ ...one, session: `s${n}` }, ['web']))
  await Promise.all(adding)
  assert.equal((await taints.add({ ...one, session: 'more' }, ['web']))?.code, 'state_unavailable')
  assert.deepEqual(taints.labelsOf({ ...one, session: 's0' }), ['web'])
  const other = { ...one, agent: 'other' }
  assert.equal(await taints.add(other, ['web']), null, 'another agent is served')
  for (const session of ['s1', 's2']) await taints.add({ ...other, session }, ['web'])
  assert.equal((await taints.add({ ...other, session: 's3' }, ['web']))?.code, 'state_unavailable', 'the pool is full')
  await taints.clear({ ...one, session: 's0' }, { wanted: ['*'], turn: taints.turn })
  await clock.advance(48 * HOUR_MS)
  assert.equal(
    await taints.add({ ...one, session: 'more' }, ['web']),
    null,
    'places of sessions that are over are free',
  )
})

test('opening a journal with an unknown event fails', () => {
  assert.throws(() => decodeTaintEvent({ t: 'forgotten' }), /"forgotten" is not known/)
})

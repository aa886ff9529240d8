import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { SharedPool, TestClock } from '@plat/core'
import { createMemoryJournal, type Journal } from '@plat/state'
import { isDenial } from '../denial.ts'
import { testIdentity } from '../testing/identity.ts'
import { Bindings, type BindingsOptions, KEPT_MS } from './bindings.ts'
import { type BindingEvent, decodeBindingEvent } from './events.ts'

const SERVER = 'a2a/default/helper'
const DAY_MS = 24 * 3600 * 1000
const ada = { ...testIdentity, agent: 'planner', user: 'ada' }
const bob = { ...ada, user: 'bob' }

async function setUp(
  t: TestContext,
  wrap: (own: Journal<BindingEvent>) => Journal<BindingEvent> = (own) => own,
  options: Pick<BindingsOptions, 'forgetsOldest'> = {},
) {
  const clock = new TestClock()
  const own = createMemoryJournal<BindingEvent>(() => clock.now())
  const faults: unknown[] = []
  const open = async (total = 400, share = 20) => {
    const journal = wrap(own)
    const bindings = await Bindings.open({
      ...options,
      journal,
      clock,
      onFault: (error) => void faults.push(error),
      pool: new SharedPool({ name: 'task_bindings', total, shares: [share] }),
    })
    t.after(() => bindings.close())
    return bindings
  }
  return { clock, journal: own, faults, open, bindings: await open() }
}

const by = (identity: typeof ada, call = 'call-1') => ({ identity, server: SERVER, call })

test('a task of an agent belongs to its caller once that is durable, also after a restart', async (t) => {
  const { bindings, open, journal } = await setUp(t)
  const binding = bindings.bind(by(ada), 'task', 't1')
  assert.ok(binding instanceof Promise)
  // A second frame of the same response waits for the same write.
  assert.equal(bindings.bind(by(ada, 'call-2'), 'task', 't1'), binding)
  assert.equal(await binding, null)
  const entries = []
  for await (const { key, event } of journal.read(0)) entries.push([key, event.t])
  assert.deepEqual(entries, [['task/default/helper/t1', 'bound']])
  assert.equal(bindings.bind(by(ada), 'task', 't1'), null)
  for (const one of [bindings, await open()]) {
    assert.equal(one.owns(ada, SERVER, 'task', 't1'), true)
    assert.equal(one.owns(bob, SERVER, 'task', 't1'), false)
    assert.equal(one.owns({ ...ada, tenant: 'other' }, SERVER, 'task', 't1'), false)
    assert.equal(one.owns({ ...ada, issuer: 'https://other.example' }, SERVER, 'task', 't1'), false)
    assert.equal(one.owns(ada, SERVER, 'context', 't1'), false)
    assert.equal(one.owns(ada, 'a2a/default/other', 'task', 't1'), false)
    assert.equal(one.callOf(SERVER, 'task', 't1'), 'call-1')
  }
})

test('if two replicas bind the same id at once, the first write decides the owner on both', async (t) => {
  const gate = Promise.withResolvers<void>()
  let replicas = 0
  const { bindings: first, open } = await setUp(t, (own) => {
    if (replicas++ === 0) return own
    const late: Journal<BindingEvent>['append'] = async (...args) => {
      await gate.promise
      return own.append(...args)
    }
    return {
      health: 'ok',
      read: (...a) => own.read(...a),
      follow: (...a) => own.follow(...a),
      compact: (...a) => own.compact(...a),
      append: late,
    }
  })
  const second = await open()
  const bobs = second.bind(by(bob), 'task', 't1')
  assert.equal(await first.bind(by(ada), 'task', 't1'), null)
  gate.resolve()
  assert.ok(isDenial(await bobs))
  for (const one of [first, second, await open()]) {
    assert.deepEqual([one.owns(ada, SERVER, 'task', 't1'), one.owns(bob, SERVER, 'task', 't1')], [true, false])
  }
})

test('an id with another owner is refused', async (t) => {
  const { bindings } = await setUp(t)
  await bindings.bind(by(ada), 'task', 't1')
  assert.ok(isDenial(bindings.bind(by(bob), 'task', 't1')))
  assert.equal(bindings.owns(ada, SERVER, 'task', 't1'), true)
})

test('an owner that cannot be persisted is refused, and owns nothing', async (t) => {
  const { bindings, faults } = await setUp(t, (own) => ({
    ...own,
    health: 'ok',
    read: (after) => own.read(after),
    follow: (...all) => own.follow(...all),
    compact: (...all) => own.compact(...all),
    append: () => Promise.reject(new Error('disk')),
  }))
  const no = await bindings.bind(by(ada), 'task', 't1')
  assert.ok(isDenial(no) && no.code === 'state_unavailable')
  assert.equal(bindings.owns(ada, SERVER, 'task', 't1'), false)
  assert.equal(faults.length, 1)
})

test('thirty days after its last use a task is forgotten, and can get another owner', async (t) => {
  const { bindings, clock, open } = await setUp(t)
  await bindings.bind(by(ada), 'task', 't1')
  await bindings.bind(by(ada), 'task', 'unused')
  await clock.advance(20 * DAY_MS)
  assert.equal(bindings.owns(ada, SERVER, 'task', 't1'), true)
  await clock.advance(20 * DAY_MS)
  assert.deepEqual(
    [bindings.owns(ada, SERVER, 'task', 't1'), bindings.owns(ada, SERVER, 'task', 'unused')],
    [true, false],
  )
  assert.equal((await open()).owns(ada, SERVER, 'task', 't1'), true)
  await clock.advance(KEPT_MS + DAY_MS)
  assert.equal(bindings.size, 0)
  await bindings.bind(by(bob), 'task', 't1')
  for (const one of [bindings, await open()])
    assert.deepEqual([one.owns(ada, SERVER, 'task', 't1'), one.owns(bob, SERVER, 'task', 't1')], [false, true])
})

test('the journal is compacted without forgotten bindings', async (t) => {
  const { bindings, clock, open, journal } = await setUp(t)
  await bindings.bind(by(ada), 'task', 'old')
  await clock.advance(KEPT_MS + DAY_MS)
  await bindings.bind(by(ada), 'task', 'new')
  await bindings.compact()
  const keys = []
  for await (const { key } of journal.read(0)) keys.push(key)
  assert.deepEqual(keys, ['task/default/helper/new'])
  assert.equal((await open()).owns(ada, SERVER, 'task', 'new'), true)
})

test('the number of bindings and the length of ids are limited', async (t) => {
  const { open } = await setUp(t)
  const bindings = await open(1)
  await bindings.bind(by(ada), 'task', 't1')
  const full = bindings.bind(by(ada), 'task', 't2')
  assert.ok(isDenial(full) && full.code === 'state_unavailable')
  const long = bindings.bind(by(ada), 'context', 'x'.repeat(257))
  assert.ok(isDenial(long) && long.code === 'upstream_error')
})

test('an agent at its share of tasks gets no more, while another agent does', async (t) => {
  const { open, clock } = await setUp(t)
  const bindings = await open(10, 2)
  for (const id of ['t1', 't2']) assert.equal(await bindings.bind(by(ada), 'task', id), null)
  // Other users and sessions of the agent have no separate share.
  const full = bindings.bind(by({ ...bob, session: 'another' }), 'task', 't3')
  assert.ok(isDenial(full) && full.code === 'rate_limited')
  assert.equal(await bindings.bind(by({ ...ada, agent: 'other' }), 'task', 't3'), null)
  await clock.advance(KEPT_MS + DAY_MS)
  assert.equal(await bindings.bind(by(ada), 'task', 't4'), null)
})

const other = { ...ada, session: 'other' }

/** Sessions that sent into task `t1`, or null if unknown. */
const senders = (bindings: Bindings) => bindings.sessionsOf(SERVER, 'task', 't1')?.values().toArray().toSorted() ?? null

test('the senders of a task are known once durable, also after a restart', async (t) => {
  const { bindings, open } = await setUp(t)
  assert.equal(senders(bindings), null)
  await bindings.bind(by(ada), 'task', 't1')
  const sending = bindings.sends(other, SERVER, 'task', 't1')
  assert.ok(sending instanceof Promise)
  assert.equal(await sending, null)
  assert.equal(bindings.sends(other, SERVER, 'task', 't1'), null)
  assert.equal(bindings.sends(other, SERVER, 'task', 'unknown'), null)
  for (const one of [bindings, await open()]) assert.deepEqual(senders(one), ['other', 's'])
  await bindings.compact()
  assert.deepEqual(senders(await open()), ['other', 's'])
})

test('a task inherits the senders of the tasks that its message names, also if they are unknown', async (t) => {
  const { bindings, open } = await setUp(t)
  await bindings.bind({ ...by(ada), sessions: ['a', 'b'] }, 'task', 't1')
  assert.deepEqual(senders(bindings), ['a', 'b'])
  const [first, second] = [
    bindings.bind({ ...by(ada), sessions: ['b', 'c'] }, 'task', 't1'),
    bindings.bind({ ...by(ada), sessions: ['d'] }, 'task', 't1'),
  ]
  await Promise.all([first, second])
  assert.deepEqual(senders(bindings), ['a', 'b', 'c', 'd'])
  await bindings.bind({ ...by(ada), sessions: null }, 'task', 't1')
  for (const one of [bindings, await open()]) assert.equal(senders(one), null)
  await bindings.compact()
  assert.equal(senders(await open()), null)
})

test('a task with too many senders counts as having unknown ones', async (t) => {
  const { bindings, open } = await setUp(t)
  await bindings.bind(by(ada), 'task', 't1')
  for (let n = 1; n < 32; n++) await bindings.sends({ session: `s${n}` }, SERVER, 'task', 't1')
  assert.equal(senders(bindings)?.length, 32)
  await bindings.sends({ session: 'one more' }, SERVER, 'task', 't1')
  for (const one of [bindings, await open()]) assert.equal(senders(one), null)
})

test('a message is refused if its sender cannot be persisted', async (t) => {
  let broken = false
  const { bindings } = await setUp(t, (own) => ({
    health: 'ok',
    read: (after) => own.read(after),
    follow: (...all) => own.follow(...all),
    compact: (...all) => own.compact(...all),
    append: (...all) => (broken ? Promise.reject(new Error('disk')) : own.append(...all)),
  }))
  await bindings.bind(by(ada), 'task', 't1')
  broken = true
  const denial = await bindings.sends(other, SERVER, 'task', 't1')
  assert.equal(denial?.code, 'state_unavailable')
})

test('an event of a later version is an error at open', () => {
  assert.throws(() => decodeBindingEvent({ t: 'moved' }), /"moved" is not known/)
})

test('what is released belongs to no caller, on every replica and after a restart, and keeps its labels until then', async (t) => {
  const { bindings, open } = await setUp(t)
  await bindings.bind({ ...by(ada), labels: ['web'] }, 'content', 'f1')
  await bindings.bind(by(ada), 'content', 'f2')
  await bindings.bind(by(bob), 'content', 'f3')
  const other = await open()
  for (const one of [bindings, other]) {
    assert.deepEqual(one.labelsOf(SERVER, 'content', 'f1'), ['web'])
    assert.deepEqual(one.idsOf(ada, SERVER, 'content'), ['f1', 'f2'])
  }
  await bindings.compact()
  assert.equal(await other.release(SERVER, 'content', 'f1'), null)
  for (const one of [bindings, other, await open()]) {
    assert.equal(one.owns(ada, SERVER, 'content', 'f1'), false)
    assert.deepEqual([one.size, one.labelsOf(SERVER, 'content', 'f1')], [2, []])
  }
})

test('an agent at its share loses what it has not used for longest, and others lose nothing', async (t) => {
  const { open, clock } = await setUp(t, (own) => own, { forgetsOldest: true })
  const bindings = await open(100, 8)
  await bindings.bind(by({ ...ada, agent: 'other' }), 'content', 'theirs')
  for (let n = 0; n < 8; n++) {
    await clock.advance(1000)
    await bindings.bind(by(ada), 'content', `r${n}`)
  }
  await clock.advance(1000)
  assert.equal(bindings.owns(ada, SERVER, 'content', 'r0'), true)
  assert.equal(await bindings.bind(by(ada), 'content', 'r8'), null)
  for (const one of [bindings, await open(100, 8)]) {
    assert.deepEqual(one.idsOf(ada, SERVER, 'content'), ['r0', 'r2', 'r3', 'r4', 'r5', 'r6', 'r7', 'r8'])
    assert.equal(one.owns({ ...ada, agent: 'other' }, SERVER, 'content', 'theirs'), true)
  }
})

test('an agent at its share loses exactly one binding for each new one, in the order of their last use', async (t) => {
  const { open, clock } = await setUp(t, (own) => own, { forgetsOldest: true })
  const bindings = await open(100, 40)
  const bind = async (id: string) => {
    await clock.advance(1000)
    assert.equal(await bindings.bind(by(ada), 'content', id), null)
  }
  const owned = (one = bindings) => one.idsOf(ada, SERVER, 'content')
  const all = Array.from({ length: 40 }, (_, n) => `r${n}`)
  for (const id of all) await bind(id)
  await bind('new-0')
  assert.deepEqual(owned(), [...all.slice(1), 'new-0'])
  // Uses after the search of the first eviction count as well.
  await clock.advance(1000)
  for (const id of ['r1', 'r3']) assert.equal(bindings.owns(ada, SERVER, 'content', id), true)
  await bindings.release(SERVER, 'content', 'r5')
  for (const id of ['new-1', 'new-2', 'new-3', 'new-4']) await bind(id)
  const lost = new Set(['r0', 'r2', 'r4', 'r5', 'r6'])
  const left = [...all.filter((id) => !lost.has(id)), 'new-0', 'new-1', 'new-2', 'new-3', 'new-4']
  for (const one of [bindings, await open(100, 40)]) assert.deepEqual(owned(one), left)
})

test('an agent beyond its share, such as by a smaller one since, is back at it after one new binding', async (t) => {
  const { open, clock } = await setUp(t, (own) => own, { forgetsOldest: true })
  const before = await open(100, 20)
  for (let n = 0; n < 20; n++) {
    await clock.advance(1000)
    await before.bind(by(ada), 'content', `r${n}`)
  }
  const bindings = await open(100, 10)
  await clock.advance(1000)
  assert.equal(await bindings.bind(by(ada), 'content', 'new'), null)
  const left = Array.from({ length: 9 }, (_, n) => `r${n + 11}`)
  assert.deepEqual(bindings.idsOf(ada, SERVER, 'content'), [...left, 'new'])
})

test('bindings that a journal replaces, since events were missed, count once', async (t) => {
  let replaced: Parameters<Journal<BindingEvent>['follow']>[3]
  const { open, journal } = await setUp(t, (own) => ({
    ...{ health: 'ok', append: (...a) => own.append(...a), read: (...a) => own.read(...a) },
    compact: (...a) => own.compact(...a),
    follow(after, apply, signal, replace) {
      replaced = replace
      return own.follow(after, apply, signal, replace)
    },
  }))
  const bindings = await open(10, 3)
  await bindings.bind(by(ada), 'task', 't1')
  for (let n = 0; n < 3; n++) replaced?.(await Array.fromAsync(journal.read(0)))
  assert.equal(await bindings.bind(by(ada), 'task', 't2'), null)
  assert.deepEqual(bindings.idsOf(ada, SERVER, 'task'), ['t1', 't2'])
})

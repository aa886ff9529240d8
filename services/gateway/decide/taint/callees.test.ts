import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { TestClock } from '@plat/core'
import { createMemoryJournal, type Journal } from '@plat/state'
import fc from 'fast-check'
import type { Identity, SessionRef } from '../../call/index.ts'
import { testIdentity } from '../../call/testing/identity.ts'
import { decodeTaintEvent, type TaintEvent } from './events.ts'
import { Taints } from './taints.ts'

const HOUR_MS = 3_600_000

async function book(t: TestContext, wrap: (own: Journal<TaintEvent>) => Journal<TaintEvent> = (own) => own) {
  const clock = new TestClock()
  const journal = wrap(createMemoryJournal<TaintEvent>(() => clock.now()))
  const open = async () => {
    const taints = await Taints.open({
      journal,
      clock,
      retentionMs: 24 * HOUR_MS,
      onChange: () => {},
      onSessions: () => {},
      onFault: () => {},
    })
    t.after(() => taints.close())
    return taints
  }
  return { clock, journal, open, taints: await open() }
}

const ref = (name: string): SessionRef => {
  const [agent = '', session = ''] = name.split('/')
  return { namespace: 'default', agent, session }
}

let tokens = 0

/** A caller with its token, delegated by these sessions, nearest first. */
function who(clock: TestClock, name: string, by: readonly string[] = [], inheritedTaints: readonly string[] = []) {
  const delegators = by.map(ref)
  const chain = delegators.map(({ namespace, agent }) => `${namespace}/${agent}`)
  const expiresAt = clock.now() + HOUR_MS
  return { ...testIdentity, ...ref(name), jti: `j${++tokens}`, delegators, chain, inheritedTaints, expiresAt }
}

const from = (taints: Taints, agent: string, ...callers: readonly string[]) =>
  taints
    .labelsFrom(
      `default/${agent}`,
      callers.map((name) => `default/${name}`),
    )
    .toSorted()

test('a response brings the labels of sessions that act for its caller or for themselves, else those of all', async (t) => {
  const { taints, clock, open } = await book(t)
  await taints.add(who(clock, 'b/1', ['a/1']), ['web'])
  await taints.add(who(clock, 'b/2', ['a/2']), ['mail'])
  await taints.add(who(clock, 'b/3'), ['own'])
  await taints.add(who(clock, 'c/1', ['b/1', 'a/1']), ['deep'])
  for (const one of [taints, await open()]) {
    assert.deepEqual(from(one, 'b', 'a/1'), ['deep', 'own', 'web'])
    assert.deepEqual(from(one, 'b', 'a/2'), ['mail', 'own'])
    assert.deepEqual(from(one, 'b', 'a/1', 'a/2'), ['deep', 'mail', 'own', 'web'])
    assert.deepEqual(from(one, 'b', 'a/3'), ['deep', 'mail', 'own', 'web'])
    assert.deepEqual(one.labelsFrom('default/b', null).toSorted(), ['deep', 'mail', 'own', 'web'])
    assert.deepEqual(from(one, 'c', 'b/1'), ['deep'])
    assert.deepEqual(from(one, 'd', 'a/1'), [])
    assert.deepEqual(one.labelsFrom('other/b', null), [])
  }
})

test('a session that acts for a caller is registered before it has labels, with the first call of each token', async (t) => {
  const { taints, clock, open, journal } = await book(t)
  await taints.add(who(clock, 'b/1', ['a/1']), ['web'])
  assert.equal(taints.note(who(clock, 'b/2', ['a/2'])), null)
  assert.equal(taints.note(who(clock, 'b/1', ['a/3'])), null)
  await new Promise(setImmediate)
  for (const one of [taints, await open()])
    assert.deepEqual([from(one, 'b', 'a/2'), from(one, 'b', 'a/3'), from(one, 'b', 'a/4')], [[], ['web'], ['web']])
  // A session without labels is removed with its tokens.
  const entries = (await Array.fromAsync(journal.read(0))).length
  await clock.advance(2 * HOUR_MS)
  assert.deepEqual(from(taints, 'b', 'a/2'), ['web'])
  assert.equal((await Array.fromAsync(journal.read(0))).length, entries)
})

test('labels of a token count as well, durably before its call continues, until they are cleared', async (t) => {
  const gates: (() => void)[] = []
  const { taints, clock, open } = await book(t, (own) => ({
    health: 'ok',
    read: (after) => own.read(after),
    follow: (...all) => own.follow(...all),
    compact: (...all) => own.compact(...all),
    append: async (...all) => {
      await new Promise<void>((resolve) => void gates.push(resolve))
      return own.append(...all)
    },
  }))
  const fork = who(clock, 'b/1', [], ['parent'])
  const noting = taints.note(fork)
  assert.ok(noting instanceof Promise)
  gates.shift()?.()
  assert.equal(await noting, null)
  assert.equal(taints.note(fork), null)
  for (const one of [taints, await open()]) assert.deepEqual(from(one, 'b', 'a/1'), ['parent'])
  const clearing = taints.clear(fork, { wanted: ['*'], turn: taints.turn })
  gates.shift()?.()
  await clearing
  for (const one of [taints, await open()]) assert.deepEqual(from(one, 'b', 'a/1'), [])
})

test('a token whose labels cannot be stored is refused each time', async (t) => {
  const { taints, clock } = await book(t, (own) => ({
    health: 'ok',
    read: (after) => own.read(after),
    follow: (...all) => own.follow(...all),
    compact: (...all) => own.compact(...all),
    append: () => Promise.reject(new Error('the disk is full')),
  }))
  const fork = who(clock, 'b/1', [], ['parent'])
  for (const _ of [1, 2]) {
    const denial = await taints.note(fork)
    assert.equal(denial?.code, 'state_unavailable')
  }
})

test('a session that listens to an agent gets its new labels and retains them after the session of the agent ends', async (t) => {
  const { taints, clock, open } = await book(t)
  const listener = { ...who(clock, 'a/1'), expiresAt: clock.now() + 100 * HOUR_MS }
  assert.equal(await taints.listen(listener, 'default/b'), null)
  assert.equal(taints.listen(listener, 'default/b'), null)
  await taints.add(who(clock, 'b/1', ['a/2']), ['web'])
  for (const one of [taints, await open()]) {
    assert.deepEqual(one.labelsOf(listener), ['web'])
    assert.deepEqual(one.ownLabels(ref('a/1')), ['web'])
  }
  // A listening session passes on the labels it received.
  assert.deepEqual(from(taints, 'b', 'a/1'), ['web'])
  await clock.advance(40 * HOUR_MS)
  for (const one of [taints, await open()]) {
    assert.deepEqual(one.labelsFrom('default/b', null), [])
    assert.deepEqual(one.labelsOf(listener), ['web'])
  }
})

test('a session with more delegators than the bound counts for every caller', async (t) => {
  const { taints, clock, open } = await book(t)
  for (let n = 0; n < 300; n++) taints.note(who(clock, 'b/1', [`a/${n}`]))
  taints.note(who(clock, 'b/2', ['a/299']))
  await taints.add(who(clock, 'b/1'), ['web'])
  for (const one of [taints, await open()])
    for (const caller of ['a/0', 'a/299']) assert.deepEqual(from(one, 'b', caller), ['web'], caller)
})

test('a session of an older version, which has no delegators, counts for every caller', async (t) => {
  const { taints, clock, journal } = await book(t)
  const at = clock.now()
  const old = { at, expiresAt: at + HOUR_MS, jti: 'old' }
  await journal.append('default/b/1', [decodeTaintEvent({ t: 'added', ...old, labels: ['web'] })])
  const tokens = [{ jti: 'old', expiresAt: at + HOUR_MS }]
  await journal.append('default/b/2', [decodeTaintEvent({ t: 'snapshot', at, labels: ['mail'], cleansed: [], tokens })])
  taints.note(who(clock, 'b/3', ['a/1']))
  assert.deepEqual(from(taints, 'b', 'a/1'), ['mail', 'web'])
})

const SESSIONS = ['a/1', 'b/1', 'b/2', 'c/1'] as const
const chains = fc.constantFrom<readonly string[]>([], ['a/1'], ['a/2'], ['b/1', 'a/1'], ['c/1'])
const steps = fc.array(
  fc.record({
    session: fc.constantFrom(...SESSIONS),
    by: chains,
    op: fc.constantFrom('add', 'clear', 'note', 'listen', 'wait'),
    labels: fc.subarray(['x', 'y', '*'], { minLength: 1 }),
    brought: fc.subarray(['z']),
  }),
  { maxLength: 25 },
)

test('a restart restores the labels for callers, before and after compaction', async (t) => {
  await fc.assert(
    fc.asyncProperty(steps, async (list) => {
      const { taints, clock, open } = await book(t)
      for (const { session, by, op, labels, brought } of list) {
        const one: Identity = { ...who(clock, session, by, brought), expiresAt: Number.MAX_SAFE_INTEGER }
        if (op === 'add') await taints.add(one, labels)
        else if (op === 'clear') await taints.clear(one, { wanted: labels, turn: taints.turn })
        else if (op === 'note') await taints.note(one)
        else if (op === 'listen') await taints.listen(one, 'default/c')
        else await clock.advance(HOUR_MS)
      }
      await new Promise(setImmediate)
      const known = (one: Taints) => [
        ['a', 'b', 'c'].map((agent) => [from(one, agent), from(one, agent, 'a/1'), from(one, agent, 'a/2', 'b/1')]),
        SESSIONS.map((name) => one.ownLabels(ref(name)).toSorted()),
      ]
      const expected = known(taints)
      assert.deepEqual(known(await open()), expected)
      await taints.compact()
      assert.deepEqual(known(await open()), expected)
    }),
    { numRuns: 100 },
  )
})

import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { type PoolBound, TestClock } from '@plat/core'
import { createMemoryJournal, type Journal, openFileJournal } from '@plat/state'
import { tempFolder } from '@plat/testkit/local'
import type { Question } from './events.ts'
import { type ArgumentsEvent, decodeArgumentsEvent, WholeArguments } from './whole-arguments.ts'

const MIB = 1024 * 1024
const NOW = 1_000
const END = 2_000

function questionOf(id: string, more: Partial<Question> = {}): Question {
  const who = { tenant: '', namespace: 'shop', agent: 'buyer', session: 's1', user: null }
  const call = { target: 'notes', server: 'notes', tool: null, method: 'tools/call', argsSha256: null, argsBytes: 0 }
  const rule = { preview: null, policy: null, rule: null, reason: '', policyRevision: '', digest: id }
  return {
    id,
    ...who,
    ...call,
    ...rule,
    quorum: { minApprovers: 1, approverGroups: [] },
    createdAt: 0,
    expiresAt: END,
    ...more,
  }
}

async function setUp(t: TestContext, journal: Journal<ArgumentsEvent> = createMemoryJournal(() => 0)) {
  const refused: PoolBound[] = []
  let used = () => -1
  const observer = {
    watch: (read: () => number) => {
      used = read
    },
    refused: (bound: PoolBound) => void refused.push(bound),
  }
  const whole = await WholeArguments.open({ journal, observer, onFault: (error) => assert.fail(String(error)) })
  t.after(() => whole.close())
  return { journal, whole, refused, used: () => used() }
}

test('arguments are kept while their approval waits, at every replica, and then removed', async (t) => {
  const { journal, whole, used } = await setUp(t)
  const other = (await setUp(t, journal)).whole
  for (const id of ['pending', 'decided', 'new']) assert.equal(await whole.keep(questionOf(id), `{"of":"${id}"}`), true)
  assert.equal(other.get('decided'), '{"of":"decided"}')
  const isPending = (id: string) => (id === 'new' ? null : id === 'pending')
  await other.sweep(isPending, NOW)
  for (const one of [whole, other]) {
    assert.deepEqual([one.get('pending'), one.get('decided')], ['{"of":"pending"}', null])
    assert.equal(one.has('new'), true, 'of an approval that this replica does not know yet')
  }
  await whole.sweep(isPending, END)
  assert.deepEqual([whole.has('pending'), whole.has('new')], [true, false])
  await whole.sweep(() => false, END)
  assert.equal(used(), 0)
})

test('a session at its share of arguments gets no more stored, while another session does', async (t) => {
  const { whole, refused, used } = await setUp(t)
  const keep = (id: string, more: Partial<Question>) => whole.keep(questionOf(id, more), 'x'.repeat(MIB))
  const results = await Promise.all(['a', 'b', 'c', 'd'].map((id) => keep(id, {})))
  assert.deepEqual([results, refused], [[true, true, true, false], ['share']])
  assert.equal(await keep('e', { session: 's2' }), true)
  assert.ok(used() > 4 * MIB)
  await whole.sweep((id) => id !== 'a', NOW)
  assert.equal(await keep('f', {}), true)
})

test('arguments survive a restart, and those that were removed leave the file', async (t) => {
  const file = path.join(tempFolder(), 'arguments.jsonl')
  const open = () => openFileJournal({ path: file, clock: new TestClock(), decode: decodeArgumentsEvent })
  const first = await open()
  const before = await setUp(t, first)
  await before.whole.keep(questionOf('a'), 'kept')
  for (let n = 0; n < 16; n++) {
    await before.whole.keep(questionOf(`long-${n}`), `secret${'x'.repeat(MIB)}`)
    await before.whole.sweep((id) => id === 'a', NOW)
  }
  assert.ok(!(await readFile(file, 'utf8')).includes('secret'))
  await first.close()
  const second = await open()
  const { whole } = await setUp(t, second)
  assert.equal(whole.get('a'), 'kept')
  assert.equal(whole.has('long-0'), false)
  await second.close()
  assert.throws(() => decodeArgumentsEvent({ t: 'other' }), /not known to this version/)
})

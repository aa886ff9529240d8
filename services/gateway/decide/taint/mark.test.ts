import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { TestClock } from '@plat/core'
import { createMemoryJournal, type Journal } from '@plat/state'
import { type Call, type Frame, isDenial, type Target } from '../../call/index.ts'
import { testCall, testTarget } from '../../call/testing/call.ts'
import { testIdentity } from '../../call/testing/identity.ts'
import type { TaintEvent } from './events.ts'
import { createMark } from './mark.ts'
import { createTaintStage } from './stage.ts'
import { Taints } from './taints.ts'

const clock = new TestClock()
const identity = { ...testIdentity, expiresAt: clock.now() + 3_600_000 }

async function setUp(t: TestContext, append?: Journal<TaintEvent>['append']) {
  const journal = createMemoryJournal<TaintEvent>(() => clock.now())
  const taints = await Taints.open({
    journal: {
      append: append ?? ((key, events) => journal.append(key, events)),
      read: (after) => journal.read(after),
      follow: (after, apply, signal) => journal.follow(after, apply, signal),
      compact: (upTo, snapshot) => journal.compact(upTo, snapshot),
      health: 'ok',
    },
    clock,
    retentionMs: 86_400_000,
    onChange() {},
    onSessions() {},
    onFault() {},
  })
  t.after(() => taints.close())
  return taints
}

function callOf(labels: Partial<Target['labels']>, taints: Taints): Call<'identity' | 'target' | 'taints'> {
  const target: Target = {
    ...testTarget,
    tool: 'read',
    trust: 'trusted',
    labels: { taints: [], clearTaints: [], sinks: [], ...labels },
  }
  const own = { receivedAt: clock.now(), name: 'read' }
  const verdict = createTaintStage(taints).admit(testCall({ identity, target, taints: { labels: [] } }, own))
  assert.ok('taints' in verdict)
  return testCall({ identity, target, taints: verdict.taints }, own)
}

const frame = (role: Frame['role'], value: unknown): Frame => ({ role, value, raw: Buffer.from('x') })
const good = frame('final', { result: { content: [] } })

const open = (taints: Taints, labels: Partial<Target['labels']>, clears = false) =>
  createMark({ taints, clears: () => clears }).open(callOf(labels, taints))

test('no frame passes before its label is durable, and none at all when it cannot be stored', async (t) => {
  const gate = Promise.withResolvers<number>()
  const taints = await setUp(t, () => gate.promise)
  const running = open(taints, { taints: ['web'] }) ?? assert.fail()
  let passed = false
  const passing = Promise.resolve(running.frame(frame('progress', {}))).then((frames) => {
    passed = true
    return frames
  })
  await new Promise((resolve) => setImmediate(resolve))
  assert.ok(!passed)
  gate.reject(new Error('the disk is full'))
  const verdict = await passing
  assert.ok(isDenial(verdict))
  assert.equal(verdict.code, 'state_unavailable')
  assert.deepEqual(running.marking?.added, [])
})

test('a reply without new labels costs no review, unless a label could be cleared meanwhile', async (t) => {
  const taints = await setUp(t)
  assert.equal(open(taints, {}), null)
  assert.equal(open(taints, { sinks: ['mail'] }), null)
  const first = open(taints, { taints: ['web'] }) ?? assert.fail()
  assert.deepEqual(await first.frame(good), [good])
  assert.deepEqual(first.marking?.added, ['web'])
  assert.equal(open(taints, { taints: ['web'] }), null)
  const again = open(taints, { taints: ['web'] }, true) ?? assert.fail()
  assert.deepEqual(again.frame(good), [good])
  assert.deepEqual(again.marking?.added, [])
})

test('only a response without an error that is not another question clears labels', async (t) => {
  const taints = await setUp(t)
  await taints.add(identity, ['web'])
  const failures = [
    { error: { code: -32000, message: 'no' } },
    { result: { isError: true } },
    { result: { resultType: 'input_required' } },
    { result: null },
    undefined,
  ]
  for (const value of failures) {
    const running = open(taints, { clearTaints: ['*'] }) ?? assert.fail()
    await running.frame(frame('final', value))
    await running.marking?.sent?.()
    assert.deepEqual(taints.labelsOf(identity), ['web'])
  }
  const running = open(taints, { clearTaints: ['*'] }) ?? assert.fail()
  await running.frame(frame('final', { result: { resultType: 'complete' } }))
  assert.deepEqual(taints.labelsOf(identity), ['web'])
  await running.marking?.sent?.()
  assert.deepEqual([taints.labelsOf(identity), running.marking?.cleared], [[], ['web']])
})

test('a tool that adds a label and clears all retains the added one', async (t) => {
  const taints = await setUp(t)
  await taints.add(identity, ['web'])
  const running = open(taints, { taints: ['checked', 'web'], clearTaints: ['*'] }) ?? assert.fail()
  await running.frame(good)
  await running.marking?.sent?.()
  assert.deepEqual([...taints.labelsOf(identity)].toSorted(), ['checked', 'web'])
})

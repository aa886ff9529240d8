import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { deny, type Frame, FrameRun, Snapshots } from '../../call/index.ts'
import type { RunningReview } from '../stage.ts'
import { GatewayRequest, GovernedCall } from './call.ts'
import { CallAbort } from './call-abort.ts'
import { unknownOperation } from './plan.ts'
import { ReviewChain, type ReviewResult } from './reviews.ts'
import { ada } from './testing/fixture.ts'

const clock = new TestClock()
const sink = {
  headSent: false,
  reply: () => {},
  open: () => {},
  write: () => {},
  end: () => {},
  tunnel: () => null,
  destroy: () => {},
}

/** Returns the opened chain of a call with these reviews. */
function chainOf(...running: readonly RunningReview[]): ReviewChain {
  const wire = { method: 'POST', path: '/', query: '', headers: {}, body: Readable.from([]), remote: '' }
  const { current: snapshot } = new Snapshots()
  const incoming = new GatewayRequest({
    id: 'c',
    wire,
    sink,
    abort: new CallAbort(),
    snapshot,
    clock,
    log: { error: () => {} },
  })
  const parsed = { operation: 'model.generate', method: '', server: '', name: null, body: null, parent: null } as const
  const reviews = running.map((review) => ({ name: 'meter', open: () => review }) as const)
  const chain = new ReviewChain(new GovernedCall(incoming, ada, parsed, { ...unknownOperation, reviews }), clock)
  assert.equal(chain.open(), null)
  return chain
}

const frame = (text: string): Frame => ({ role: 'partial', value: text, raw: null })
const words = (reviewed: ReviewResult) =>
  Array.isArray(reviewed) ? reviewed.map(({ value }) => value) : assert.fail(String(reviewed))
const split = () => [frame('a'), frame('b')]
const run = new FrameRun({ raw: Buffer.from('ab'), count: 2, shortest: 1, split })

/** Records each frame and lets it pass. */
function watcher(seen: unknown[], skims: boolean): RunningReview {
  const watching: RunningReview = {
    frame: (it) => {
      seen.push(it.value)
      return [it]
    },
    end: () => [],
  }
  return skims ? { ...watching, skim: ({ count }) => void seen.push(count) } : watching
}

test('a run passes unchanged if every review skims, and is split if one checks each frame', () => {
  const [quick, slow]: [unknown[], unknown[]] = [[], []]
  const whole = chainOf(watcher(quick, true)).pass([run])
  assert.ok(Array.isArray(whole) && whole[0] === run)
  assert.deepEqual(quick, [2])
  quick.length = 0
  const parted = chainOf(watcher(quick, true), watcher(slow, false)).pass([run])
  assert.ok(!(parted instanceof Promise), 'no review returned a promise')
  assert.deepEqual(
    [words(parted), quick, slow],
    [
      ['a', 'b'],
      ['a', 'b'],
      ['a', 'b'],
    ],
  )
})

test('frames keep their order through synchronous and asynchronous reviews', async () => {
  const seen: unknown[] = []
  const thinker: RunningReview = {
    frame: (it) => (it.value === 'b' ? Promise.resolve([it, frame('b2')]) : [it]),
    end: () => Promise.resolve([frame('held')]),
  }
  const chain = chainOf(thinker, watcher(seen, false))
  const passed = await chain.pass(['a', 'b', 'c'].map(frame))
  assert.deepEqual(words(passed), ['a', 'b', 'b2', 'c'])
  assert.deepEqual(words(await chain.finish()), ['held'])
  assert.deepEqual(seen, ['a', 'b', 'b2', 'c', 'held'], 'frames held back pass the reviews after it')
})

test('a review that denies, throws or returns nothing ends the batch, at once and asynchronously', async () => {
  const denial = deny('dlp_denied', 'no')
  const answers: readonly (() => unknown)[] = [
    () => denial,
    () => Promise.resolve(denial),
    () => assert.fail('broken'),
    () => Promise.reject(new Error('broken')),
    () => undefined,
    () => Promise.resolve(undefined),
  ]
  for (const answer of answers) {
    const seen: unknown[] = []
    // The types forbid some of these; the batch must be denied nevertheless.
    const review = Object.assign(watcher([], false), { frame: answer })
    const passed = await chainOf(review, watcher(seen, false)).pass(split())
    assert.ok(typeof passed === 'object' && 'kind' in passed && passed.kind === 'denial')
    assert.deepEqual([passed.code === 'dlp_denied' || passed.code === 'internal', seen], [true, []])
  }
})

test('a run passes unchanged among frames that are checked, if every review skims it', () => {
  const [one, other]: [unknown[], unknown[]] = [[], []]
  const batch = [run, frame('c')]
  assert.deepEqual(chainOf(watcher(one, true), watcher(other, true)).pass(batch), batch)
  assert.deepEqual(
    [one, other],
    [
      [2, 'c'],
      [2, 'c'],
    ],
  )
  const slow: unknown[] = []
  const parted = chainOf(watcher([], true), watcher(slow, false)).pass(batch)
  assert.ok(!(parted instanceof Promise), 'no review returned a promise')
  assert.deepEqual(
    [words(parted), slow],
    [
      ['a', 'b', 'c'],
      ['a', 'b', 'c'],
    ],
  )
})

test('a skim that throws denies', () => {
  const broken: RunningReview = { ...watcher([], true), skim: () => assert.fail('broken') }
  const passed = chainOf(broken).pass([run])
  assert.ok(!Array.isArray(passed) && typeof passed === 'object' && 'code' in passed && passed.code === 'internal')
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemIds, TestClock } from '@plat/core'
import { WorkQueue } from './queue.ts'

const never = new AbortController().signal

const withoutJitter = { random: (bytes: number) => new Uint8Array(bytes) }

function setUp() {
  const clock = new TestClock()
  const logged: string[] = []
  const observer = {
    added: () => logged.push('added'),
    retried: () => logged.push('retried'),
    depth: () => {},
    waited: () => {},
  }
  const queue = new WorkQueue({ clock, ids: withoutJitter, observer })
  return { clock, logged, queue }
}

test('a key waits once however often it is added, and keys come in the order in which they were added', async () => {
  const { queue, logged } = setUp()
  for (const key of ['a', 'b', 'a', 'a']) queue.add(key)
  assert.deepEqual(logged, ['added', 'added'])
  assert.equal(await queue.next(never), 'a')
  assert.equal(await queue.next(never), 'b')
})

test('a key that is added while it is worked on comes again afterwards, not meanwhile', async () => {
  const { queue } = setUp()
  queue.add('a')
  assert.equal(await queue.next(never), 'a')
  queue.add('a')
  queue.add('b')
  assert.equal(await queue.next(never), 'b')
  const stop = new AbortController()
  const third = queue.next(stop.signal)
  queue.done('b')
  queue.done('a')
  assert.equal(await third, 'a')
})

test('a waiter for a key is released on abort', async () => {
  const { queue } = setUp()
  const stop = new AbortController()
  const waiting = queue.next(stop.signal)
  stop.abort()
  assert.equal(await waiting, null)
  queue.add('a')
  assert.equal(await queue.next(stop.signal), null)
})

test('pauses after failures double up to a minute, come after Retry-After, and end with a success', async () => {
  const { queue, clock } = setUp()
  const pauseOf = async (retryAfterMs = 0) => {
    queue.retry('a', retryAfterMs)
    const begun = clock.monotonic()
    const next = queue.next(never)
    let came = false
    void next.then(() => {
      came = true
    })
    while (!came) await clock.advance(250)
    queue.done('a')
    return clock.monotonic() - begun
  }
  assert.deepEqual([await pauseOf(), await pauseOf(), await pauseOf()], [250, 500, 1000])
  assert.equal(await pauseOf(10_000), 12_000)
  assert.equal(await pauseOf(99_999_000), 64_000)
  for (let turn = 0; turn < 20; turn++) await pauseOf()
  assert.equal(await pauseOf(), 60_000)
  queue.forget('a')
  assert.equal(await pauseOf(), 250)
})

test('keys that failed together come back at different times', async () => {
  const clock = new TestClock()
  const observer = { added: () => {}, retried: () => {}, depth: () => {}, waited: () => {} }
  const queue = new WorkQueue({ clock, ids: systemIds(clock), observer })
  for (let index = 0; index < 1000; index++) queue.retry(String(index), 1000)
  await clock.advance(1125)
  let due = 0
  const stop = new AbortController()
  const work = (async () => {
    while ((await queue.next(stop.signal)) !== null) due++
  })()
  await clock.advance(62)
  assert.ok(due > 300 && due < 700, `${due} of 1000 came in the first half`)
  await clock.advance(63)
  assert.equal(due, 1000)
  stop.abort()
  await work
})

test('of two times at which a key is to come the sooner counts', async () => {
  const { queue, clock } = setUp()
  queue.addAfter('a', 5000)
  queue.addAfter('a', 1000)
  queue.addAfter('a', 3000)
  const next = queue.next(never)
  await clock.advance(1000)
  assert.equal(await next, 'a')
  queue.done('a')
  queue.addAfter('b', 60_000)
  queue.close()
  await clock.advance(60_000)
  const stop = new AbortController()
  const none = queue.next(stop.signal)
  stop.abort()
  assert.equal(await none, null)
})

test('urgent keys come first, one that became urgent while it waits too, and a worker for them takes nothing else', async () => {
  const urgent = new Set(['b'])
  const observer = { added: () => {}, retried: () => {}, depth: () => {}, waited: () => {} }
  const isUrgent = (key: string) => urgent.has(key)
  const queue = new WorkQueue({ clock: new TestClock(), ids: withoutJitter, observer, isUrgent })
  for (const key of ['a', 'b', 'c']) queue.add(key)
  assert.equal(await queue.next(never, 'urgent'), 'b')
  const free = queue.next(never, 'urgent')
  urgent.add('c')
  queue.add('c')
  assert.equal(await free, 'c')
  assert.equal(await queue.next(never), 'a')
})

test('a namespace with many changed objects does not delay another one: namespaces take turns', async () => {
  const { queue } = setUp()
  for (let n = 0; n < 10_000; n++) queue.add(`storm/o${n}`)
  for (const key of ['calm/a', 'calm/b', 'cluster-wide']) queue.add(key)
  const first: string[] = []
  for (let n = 0; n < 6; n++) {
    const key = (await queue.next(never)) ?? assert.fail('no key')
    first.push(key)
    queue.add(key)
    queue.done(key)
  }
  assert.deepEqual(first, ['storm/o0', 'calm/a', 'cluster-wide', 'storm/o1', 'calm/b', 'cluster-wide'])
})

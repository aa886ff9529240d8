import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { TestClock } from '@plat/core'
import type { Log } from './log.ts'
import { Overload } from './overload.ts'

const calm = { memory: 0.3, delayMs: 51 }

function setUp(t: TestContext) {
  const clock = new TestClock()
  const lines: string[] = []
  const line = (_fields: object, message: string) => void lines.push(message)
  const log: Log = { debug: line, info: line, warn: line, error: line, child: () => log }
  const state: { load: typeof calm; collections: number; afterCollection: typeof calm | null } = {
    load: calm,
    collections: 0,
    afterCollection: null,
  }
  const load = {
    memory: () => state.load.memory,
    delayMs: () => state.load.delayMs,
    collect() {
      state.collections++
      state.load = state.afterCollection ?? state.load
    },
    close() {},
  }
  const overload = new Overload({ clock, log, load })
  t.after(() => overload.close())
  const seconds = async (count: number, reading: typeof calm) => {
    state.load = reading
    await clock.advance(count * 1000)
    return overload.active
  }
  return { seconds, lines, state }
}

test('an event loop delay of three seconds starts the overload, which lasts until the lower threshold', async (t) => {
  const { seconds, lines } = setUp(t)
  const [high, between] = [
    { ...calm, delayMs: 500 },
    { ...calm, delayMs: 300 },
  ]
  assert.equal(await seconds(5, between), false, 'between the thresholds nothing starts')
  assert.equal(await seconds(2, high), false)
  assert.equal(await seconds(1, calm), false, 'one good reading begins the count again')
  assert.equal(await seconds(2, high), false)
  assert.equal(await seconds(1, high), true)
  assert.equal(await seconds(5, between), true, 'between the thresholds nothing ends')
  assert.equal(await seconds(2, calm), true)
  assert.equal(await seconds(1, calm), false)
  assert.deepEqual(lines, ['overloaded: new work is refused', 'no longer overloaded: new work is accepted'])
})

const full = { ...calm, memory: 0.9 }

test('memory that is still short after a collection starts the overload at once, which lasts until the lower threshold', async (t) => {
  const { seconds, lines, state } = setUp(t)
  assert.equal(await seconds(5, { ...calm, memory: 0.85 }), false, 'between the thresholds nothing starts')
  assert.equal(state.collections, 0)
  assert.equal(await seconds(0.25, full), true)
  assert.equal(await seconds(5, { ...calm, memory: 0.85 }), true, 'between the thresholds nothing ends')
  assert.equal(await seconds(2.75, calm), true)
  assert.equal(await seconds(0.25, calm), false)
  assert.deepEqual(lines, ['overloaded: new work is refused', 'no longer overloaded: new work is accepted'])
})

test('memory freed by a collection starts nothing; without a collection, three readings do', async (t) => {
  const { seconds, state } = setUp(t)
  state.afterCollection = calm
  assert.equal(await seconds(1, full), false)
  assert.equal(state.collections, 1)
  assert.equal(await seconds(0.5, full), false, 'the last collection was a moment ago')
  assert.equal(await seconds(0.25, full), true)
  assert.equal(state.collections, 1)
})

test('garbage is collected every ten seconds while memory is short, also below the upper threshold', async (t) => {
  const { seconds, state } = setUp(t)
  await seconds(0.25, full)
  assert.equal(state.collections, 1)
  await seconds(9.75, { ...calm, memory: 0.85 })
  assert.equal(state.collections, 1)
  await seconds(0.25, { ...calm, memory: 0.85 })
  assert.equal(state.collections, 2)
})

test('the load of this process can be read', async (t) => {
  const clock = new TestClock()
  const line = () => {}
  const log: Log = { debug: line, info: line, warn: line, error: line, child: () => log }
  const overload = new Overload({ clock, log })
  t.after(() => overload.close())
  await clock.advance(1000)
  assert.equal(overload.active, false)
})

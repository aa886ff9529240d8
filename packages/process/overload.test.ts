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
  const state = { load: calm, collections: 0 }
  const load = { read: () => state.load, collect: () => void state.collections++, close() {} }
  const overload = new Overload({ clock, log, load })
  t.after(() => overload.close())
  const seconds = async (count: number, reading: typeof calm) => {
    state.load = reading
    await clock.advance(count * 1000)
    return overload.active
  }
  return { seconds, lines, state }
}

for (const [name, high, between] of [
  ['memory', { ...calm, memory: 0.9 }, { ...calm, memory: 0.85 }],
  ['event-loop delay', { ...calm, delayMs: 500 }, { ...calm, delayMs: 300 }],
] as const) {
  test(`high ${name} for three seconds starts the overload, and it lasts until the lower threshold`, async (t) => {
    const { seconds, lines } = setUp(t)
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
}

test('garbage is collected before memory counts as short, and then every ten seconds', async (t) => {
  const { seconds, state } = setUp(t)
  await seconds(1, { ...calm, memory: 0.95 })
  assert.equal(state.collections, 1)
  await seconds(9, { ...calm, memory: 0.95 })
  assert.equal(state.collections, 1)
  await seconds(1, { ...calm, memory: 0.95 })
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

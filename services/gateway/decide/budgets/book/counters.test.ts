import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { type Hold, type HoldItem, isShort, LocalLimits, type Short } from '@plat/state'
import { localCounters, sharedCounters } from './counters.ts'

const clock = new TestClock()
const soon = clock.now() + 60_000
const item = (key: string, cap: number, amount: number): HoldItem => ({
  key,
  window: 'life',
  cap,
  amount,
  unit: key.startsWith('rate/') ? 'calls' : 'micros',
})

function heldOf(answer: Hold | Short): Hold {
  if (isShort(answer)) assert.fail(`short of ${answer.key}`)
  return answer
}

/** Two replicas with shared budgets and separate rates. */
function setUp() {
  const shared = new LocalLimits({ clock })
  const together = Object.assign(shared, { counted: localCounters(shared).counted })
  const [rates, othersRates] = [new LocalLimits({ clock }), new LocalLimits({ clock })]
  return {
    shared,
    rates,
    one: sharedCounters(together, rates).limits,
    other: sharedCounters(together, othersRates).limits,
  }
}

const USD = 'usd/session/default/a/s'
const RATE = 'rate/default/p/r/s'

test('with local counters each replica has its own rates, and all have the same budgets', async () => {
  // Shows D3.state.stateBackend.counters.local.
  // Shows D3.state.stateBackend.counters.
  const { shared, rates, one, other } = setUp()
  const hold = heldOf(await one.take('1', [item(RATE, 1, 1), item(USD, 10, 6)], soon))
  assert.deepEqual(
    hold.items.map(({ key }) => key),
    [RATE, USD],
  )
  const short = await other.take('2', [item(RATE, 1, 1), item(USD, 10, 6)], soon)
  assert.ok(isShort(short) && short.key === USD && short.left === 4)
  heldOf(await other.take('3', [item(RATE, 1, 1)], soon))
  assert.ok(isShort(await one.take('4', [item(RATE, 1, 1)], soon)))
  assert.equal(hold.settled, null)
  await hold.settle(new Map([[USD, 2]]))
  assert.deepEqual(
    hold.settled,
    new Map([
      [RATE, 1],
      [USD, 2],
    ]),
  )
  assert.deepEqual([await one.used(USD, 'life'), await other.used(USD, 'life')], Array(2).fill({ spent: 2, held: 0 }))
  assert.deepEqual([shared.openHolds, rates.openHolds], [0, 0])
})

test('local holds are released when the shared ones are short or fail', async () => {
  const { shared, rates, one } = setUp()
  assert.ok(isShort(await one.take('1', [item(RATE, 1, 1), item(USD, 10, 11)], soon)))
  shared.take = () => {
    throw new Error('away')
  }
  await assert.rejects(async () => one.take('2', [item(RATE, 1, 1), item(USD, 10, 1)], soon), /away/)
  assert.deepEqual(await rates.used(RATE, 'life'), { spent: 0, held: 0 })
  heldOf(await one.take('3', [item(RATE, 1, 1)], soon))
})

test('a hold of both kinds grows by one of them at a time and is released whole', async () => {
  const { one } = setUp()
  const hold = heldOf(await one.take('1', [item(RATE, 5, 1), item(USD, 10, 1)], soon))
  assert.equal(await hold.extend([item(USD, 10, 2)]), null)
  assert.equal((await hold.extend([item(RATE, 5, 9)]))?.key, RATE)
  await assert.rejects(async () => hold.extend([item(RATE, 5, 1), item(USD, 10, 1)]), RangeError)
  await hold.release()
  for (const key of [RATE, USD]) assert.deepEqual(await one.used(key, 'life'), { spent: 0, held: 0 })
})

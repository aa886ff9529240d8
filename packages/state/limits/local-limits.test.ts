import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SharedPool, TestClock } from '@plat/core'
import fc from 'fast-check'
import {
  type Hold,
  type HoldItem,
  isShort,
  LocalLimits,
  type Overrun,
  PoolFullError,
  windowEnd,
  windowOf,
} from '../index.ts'
import { limitsPromises } from './limits.conformance.ts'

const clock = new TestClock()
limitsPromises({ name: 'local', open: async () => new LocalLimits({ clock }) })

const item = (key: string, cap: number, amount: number, window = 'life'): HoldItem => ({
  key,
  window,
  cap,
  amount,
  unit: 'micros',
})

function take(limits: LocalLimits, id: string, ...items: HoldItem[]): Hold {
  const answer = limits.take(id, items, clock.now() + 60_000)
  if (isShort(answer)) assert.fail(`short of ${answer.key}`)
  return answer
}

test('take and settle are synchronous', () => {
  const limits = new LocalLimits({ clock })
  const answer = limits.take('1', [item('usd/a', 10, 1)], clock.now() + 1)
  assert.ok(!(answer instanceof Promise) && !isShort(answer))
  assert.equal(answer.settle(new Map()), undefined)
  assert.equal(limits.openHolds, 0)
})

test('a key that ends like another key with its window is counted separately', async () => {
  const limits = new LocalLimits({ clock })
  take(limits, '1', item('usd/a', 10, 6, '2026-11'), item('usd/a\n2026-11', 10, 5))
  assert.equal(limits.buckets, 2)
  assert.deepEqual(await limits.used('usd/a', '2026-11'), { spent: 0, held: 6 })
  assert.deepEqual(await limits.used('usd/a\n2026-11', 'life'), { spent: 0, held: 5 })
})

test('an overrun is reported with the held and the spent amount', () => {
  const overruns: Overrun[] = []
  const limits = new LocalLimits({ clock, onOverrun: (overrun) => overruns.push(overrun) })
  take(limits, '1', item('usd/a', 10, 6)).settle(new Map([['usd/a', 6]]))
  assert.deepEqual(overruns, [])
  take(limits, '2', item('usd/b', 10, 6)).settle(new Map([['usd/b', 7]]))
  assert.deepEqual(overruns, [{ id: '2', key: 'usd/b', held: 6, spent: 7 }])
})

test('a settle with an invalid amount changes nothing, and the hold stays open', async () => {
  const limits = new LocalLimits({ clock })
  const hold = take(limits, '1', item('usd/a', 10, 6))
  assert.throws(() => hold.settle(new Map([['usd/a', Number.NaN]])), RangeError)
  assert.deepEqual(await limits.used('usd/a', 'life'), { spent: 0, held: 6 })
  hold.release()
  assert.deepEqual(await limits.used('usd/a', 'life'), { spent: 0, held: 0 })
})

test('an expired hold counts as spent until its owner settles it', async () => {
  const limits = new LocalLimits({ clock })
  const late = take(limits, '1', item('usd/a', 10, 6))
  const other = take(limits, '2', item('usd/b', 10, 6))
  await clock.advance(60_001)
  assert.deepEqual(await limits.used('usd/a', 'life'), { spent: 6, held: 0 })
  assert.equal(limits.openHolds, 0)
  late.settle(new Map([['usd/a', 1]]))
  other.release()
  assert.deepEqual(await limits.used('usd/a', 'life'), { spent: 1, held: 0 })
  assert.deepEqual(await limits.used('usd/b', 'life'), { spent: 0, held: 0 })
})

test('ended windows are removed as new ones arrive', async () => {
  const limits = new LocalLimits({ clock })
  for (let at = 0; at < 1000; at++) {
    take(limits, `${at}`, item(`rate/${at}`, 1, 1, windowOf(clock.now(), 1))).settle(new Map())
    await clock.advance(1000)
  }
  assert.ok(limits.buckets < 10, `${limits.buckets} windows are kept`)
})

test('the spending of a session is kept for 90 days after its last call', async () => {
  const limits = new LocalLimits({ clock })
  take(limits, '1', item('usd/a', 10, 6)).settle(new Map())
  await clock.advance(89 * 86_400_000)
  for (let at = 0; at < 10; at++) take(limits, `n${at}`, item(`usd/n${at}`, 10, 6)).release()
  assert.deepEqual(await limits.used('usd/a', 'life'), { spent: 6, held: 0 })
  await clock.advance(2 * 86_400_000)
  for (let at = 0; at < 10; at++) take(limits, `m${at}`, item(`usd/m${at}`, 10, 6)).release()
  assert.deepEqual(await limits.used('usd/a', 'life'), { spent: 0, held: 0 })
})

test('a counter of which nothing was spent is removed, but not between the look-up and the use of a take', async () => {
  const clock = new TestClock()
  const limits = new LocalLimits({ clock })
  const day = '2099-11-20'
  for (const key of ['usd/a', 'usd/b', 'usd/c']) take(limits, key, item(key, 10, 6, day)).release()
  await clock.advance(1)
  for (let n = 0; n < 9; n++) {
    const items = [item('usd/a', 10, 6, day), item('usd/b', 10, 6, day), item(`usd/new${n}`, 10, 6, day)]
    const hold = limits.take(`${n}`, items, clock.now() + 1000)
    if (isShort(hold)) assert.fail('nothing is held')
    assert.deepEqual(await limits.used('usd/a', day), { spent: 0, held: 6 })
    hold.release()
    await clock.advance(1)
  }
  assert.ok(limits.buckets < 9, `${limits.buckets} buckets`)
})

test('a counter of a session unused for 90 days is neither listed nor counted, even before it is removed', async () => {
  const clock = new TestClock()
  const limits = new LocalLimits({ clock })
  const take = (id: string) => limits.take(id, [item('usd/session/a', 10, 6)], clock.now() + 1000)
  const first = take('1')
  if (!isShort(first)) first.settle(new Map())
  await clock.advance(90 * 86_400_000 - 1)
  assert.deepEqual(
    [...limits.counted()].map(({ spent }) => spent),
    [6],
  )
  await clock.advance(1)
  assert.deepEqual([[...limits.counted()], await limits.used('usd/session/a', 'life')], [[], { spent: 0, held: 0 }])
  assert.ok(!isShort(take('3')))
  assert.deepEqual(await limits.used('usd/session/a', 'life'), { spent: 0, held: 6 })
})

test('the spending of an earlier process counts, unless its window has ended', async () => {
  const limits = new LocalLimits({ clock })
  const now = clock.now()
  limits.restore({ key: 'usd/a', window: 'life' }, 4, now)
  limits.restore({ key: 'usd/old', window: 'life' }, 4, now - 91 * 86_400_000)
  limits.restore({ key: 'rate/a', window: windowOf(now, 60) }, 1, now)
  limits.restore({ key: 'rate/a', window: windowOf(now - 60_000, 60) }, 1, now - 60_000)
  assert.deepEqual(await limits.used('usd/a', 'life'), { spent: 4, held: 0 })
  assert.deepEqual(await limits.used('usd/old', 'life'), { spent: 0, held: 0 })
  assert.deepEqual(await limits.used('rate/a', windowOf(now, 60)), { spent: 1, held: 0 })
  assert.deepEqual(await limits.used('rate/a', windowOf(now - 60_000, 60)), { spent: 0, held: 0 })
  assert.ok(isShort(limits.take('1', [item('usd/a', 10, 7)], now + 1)))
})

test('windows end as their text says', () => {
  assert.equal(windowEnd('life'), null)
  assert.equal(windowEnd('2026-12-31'), Date.UTC(2027, 0, 1))
  assert.equal(windowEnd('2026-02'), Date.UTC(2026, 2, 1))
  assert.equal(windowOf(Date.UTC(2026, 0, 1, 0, 0, 59), 60), String(Date.UTC(2026, 0, 1) / 60_000))
  fc.assert(
    fc.property(fc.nat({ max: 2 ** 42 }), fc.integer({ min: 1, max: 1_000_000 }), (now, seconds) => {
      const end = windowEnd(windowOf(now, seconds)) ?? 0
      return end > now && end - now <= seconds * 1000
    }),
  )
  for (const wrong of ['', 'week', '2026-1-1', '1+', '-5']) {
    assert.throws(() => windowEnd(wrong), RangeError)
  }
})

/** Random actions of callers: arrive, settle with a price, abort, disappear; and restarts of the process. */
const step = fc.oneof(
  fc.record({ do: fc.constant('take' as const), key: fc.nat({ max: 2 }), amount: fc.nat({ max: 60 }) }),
  fc.record({ do: fc.constant('settle' as const), which: fc.nat(), part: fc.nat({ max: 100 }) }),
  fc.record({ do: fc.constant('release' as const), which: fc.nat() }),
  fc.record({ do: fc.constant('crash' as const) }),
)

test('after any actions, spent and held amounts equal those of a simple model and never pass the cap', async () => {
  const CAP = 100
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      let limits = new LocalLimits({ clock })
      let open: { readonly hold: Hold; readonly key: string; readonly amount: number }[] = []
      const spent = new Map<string, number>()
      const add = (key: string, amount: number) => spent.set(key, (spent.get(key) ?? 0) + amount)
      for (const [at, it] of steps.entries()) {
        if (it.do === 'take') {
          const key = `usd/${it.key}`
          const held = open.filter((one) => one.key === key).reduce((sum, one) => sum + one.amount, 0)
          const fits = (spent.get(key) ?? 0) + held + it.amount <= CAP
          const answer = limits.take(`${at}`, [item(key, CAP, it.amount)], clock.now() + 60_000)
          assert.equal(!isShort(answer), fits)
          if (!isShort(answer)) open.push({ hold: answer, key, amount: it.amount })
        } else if (it.do === 'crash') {
          // Content of the ledger: outcomes, and intents without one, which count in full.
          for (const { key, amount } of open) add(key, amount)
          open = []
          limits = new LocalLimits({ clock })
          for (const [key, amount] of spent) limits.restore({ key, window: 'life' }, amount, clock.now())
        } else {
          const [one] = open.splice(it.which % Math.max(1, open.length), 1)
          if (one === undefined) continue
          const actual = it.do === 'release' ? 0 : Math.floor((one.amount * it.part) / 100)
          if (it.do === 'release') one.hold.release()
          else one.hold.settle(new Map([[one.key, actual]]))
          add(one.key, actual)
        }
        for (const key of ['usd/0', 'usd/1', 'usd/2']) {
          const held = open.filter((one) => one.key === key).reduce((sum, one) => sum + one.amount, 0)
          const used = await limits.used(key, 'life')
          assert.deepEqual(used, { spent: spent.get(key) ?? 0, held })
          assert.ok(used.spent + used.held <= CAP)
        }
      }
      assert.equal(limits.openHolds, open.length)
    }),
    { numRuns: 300 },
  )
})

test('counters and open holds can be listed, and every spent amount is reported with its sum', async () => {
  const reported: [string, number][] = []
  const limits = new LocalLimits({
    clock,
    onSpent: ({ key, window }, spent) => reported.push([`${key} ${window}`, spent]),
  })
  const month = item('usd/a', 10, 4, '2099-11')
  take(limits, '1', item('usd/a', 10, 6), month).settle(new Map([['usd/a', 3]]))
  const second = take(limits, '2', item('usd/a', 10, 2))
  assert.deepEqual(
    [...limits.counted()].map(({ key, window, spent, held }) => [key, window, spent, held]),
    [
      ['usd/a', 'life', 3, 2],
      ['usd/a', '2099-11', 3, 0],
    ],
  )
  assert.deepEqual(limits.open(), [second])
  second.release()
  assert.deepEqual(limits.open(), [])
  assert.deepEqual(reported, [
    ['usd/a life', 3],
    ['usd/a 2099-11', 3],
    ['usd/a life', 3],
  ])
})

test('a day or a month still running in its zone is kept after it has ended in UTC', async () => {
  const own = new TestClock(Date.UTC(2026, 10, 30, 23, 0))
  const limits = new LocalLimits({ clock: own, zone: 'America/New_York' })
  const windows = ['2026-11-30', '2026-11']
  for (const window of windows) limits.restore({ key: 'usd/a', window }, 4, own.now())
  await own.advance(5 * 3_600_000)
  // It is the first of December in UTC: restoring and new windows, which remove old ones, keep those of November.
  for (const window of windows) limits.restore({ key: 'usd/late', window }, 1, own.now() - 1)
  for (let at = 0; at < 10; at++) take(limits, `${at}`, item(`usd/n${at}`, 1, 1)).release()
  for (const window of windows) {
    assert.equal((await limits.used('usd/a', window)).spent, 4, window)
    assert.equal((await limits.used('usd/late', window)).spent, 1, window)
  }
  await own.advance(3_600_000)
  for (const window of windows) limits.restore({ key: 'usd/b', window }, 1, own.now())
  for (let at = 0; at < 10; at++) take(limits, `m${at}`, item(`usd/m${at}`, 1, 1)).release()
  for (const window of windows) {
    assert.equal((await limits.used('usd/a', window)).spent, 0)
    assert.equal((await limits.used('usd/b', window)).spent, 0)
  }
})

test('a session at its share of open holds is refused, others are served, and what is settled or expired makes room', async () => {
  const clock = new TestClock()
  const holds = new SharedPool({ name: 'open_holds', total: 6, shares: [4, 2] })
  const limits = new LocalLimits({ clock, holds })
  let calls = 0
  const take = (agent: string, session: string, cap = 100) =>
    limits.take(`c${calls++}`, [item('usd/a', cap, 1)], clock.now() + 1000, [agent, `${agent}/${session}`])
  const [first] = [take('greedy', '1'), take('greedy', '1')]
  assert.throws(() => take('greedy', '1'), /too many holds are open, of this caller/)
  for (const session of ['2', '2']) take('greedy', session)
  assert.throws(() => take('greedy', '3'), PoolFullError)
  assert.ok(!isShort(take('modest', '1')))
  assert.ok(isShort(take('modest', '1', 1)), 'a cap that is reached takes no unit')
  if (!isShort(first)) first.settle(new Map())
  assert.ok(!isShort(take('greedy', '1')))
  assert.equal(holds.used, limits.openHolds)
  await clock.advance(2000)
  assert.deepEqual([limits.open().length, holds.used], [0, 0])
})

test('a caller whose keys fill its share of counters is refused, another is counted, and windows that are over make room', async () => {
  const clock = new TestClock()
  const counters = new SharedPool({ name: 'counters', total: 6, shares: [3] })
  const limits = new LocalLimits({ clock, counters })
  const take = (caller: string, n: number, window = 'life') =>
    limits.take(
      `${caller}${n}${window}`,
      [{ key: `rate/${caller}/${n}`, window, cap: 9, amount: 1, unit: 'calls' }],
      1e15,
      caller,
    )
  const minute = windowOf(clock.now(), 60)
  for (let n = 0; n < 3; n++) {
    const hold = take('greedy', n, minute)
    if (!isShort(hold)) hold.settle(new Map())
  }
  assert.throws(() => take('greedy', 3), /too many keys are counted, of this agent/)
  for (let n = 0; n < 3; n++) take('modest', n)
  assert.throws(() => take('third', 0), /of all agents/)
  await clock.advance(61_000)
  take('greedy', 3)
  limits.restore({ key: 'usd/x', window: 'life' }, 1, clock.now())
  assert.equal(counters.used, limits.buckets)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { poolTable, SharedPool, TestClock } from '@plat/core'
import { isShort, LocalLimits } from '@plat/state'
import { Alerts, type BudgetAlert } from './alerts.ts'
import { Budget, BudgetItem } from './caps/budget.ts'
import { alertRecord } from './record.ts'

function setUp(amount = 100, zone = 'UTC') {
  const clock = new TestClock()
  const sent: string[] = []
  const alerts = new Alerts({ now: () => clock.now(), zone })
  const limits = new LocalLimits({ clock, zone, onSpent: alerts.spent })
  let broken = false
  alerts.begin(async ({ percent, window, spent }: BudgetAlert) => {
    if (broken) throw new Error('the disk is full')
    sent.push(`${window} ${percent} ${spent}`)
  })
  const budgetOf = (cap: number) =>
    new Budget({
      id: 'Agent/default/a/day',
      source: 'Agent/default/a',
      scope: 'agent',
      window: 'day',
      unit: 'micros',
      amount: cap,
      alerts: [50, 80, 100],
    })
  let calls = 0
  const spend = (micros: number, { cap = amount, window = '2026-01-01' } = {}) => {
    const budget = budgetOf(cap)
    const item = new BudgetItem({ budget, key: budget.prefix, whose: null }, window, micros)
    const hold = limits.take(`${calls++}`, [item], clock.now() + 1)
    if (hold instanceof Promise || isShort(hold)) assert.fail('no hold')
    hold.settle(new Map([[item.key, micros]]))
    return sent.splice(0)
  }
  return { clock, alerts, spend, breaks: (now: boolean) => (broken = now), budgetOf, sent }
}

test('each percentage of a window is reported once, several in one step, and again in the next window', () => {
  const { spend } = setUp()
  assert.deepEqual(spend(49), [])
  assert.deepEqual(spend(1), ['2026-01-01 50 50'])
  assert.deepEqual(spend(10), [])
  assert.deepEqual(spend(40), ['2026-01-01 80 100', '2026-01-01 100 100'])
  assert.deepEqual(spend(50, { window: '2026-01-02' }), ['2026-01-02 50 50'])
})

test('lowering a cap sends its alerts with the next call; raising it sends none again', () => {
  const { spend } = setUp()
  assert.deepEqual(spend(50), ['2026-01-01 50 50'])
  assert.deepEqual(spend(1, { cap: 60 }), ['2026-01-01 80 51'])
  assert.deepEqual(spend(34, { cap: 100 }), [])
  assert.deepEqual(spend(15), ['2026-01-01 100 100'])
})

test('alerts of an earlier process are not repeated, and an alert that could not be stored is', async () => {
  const { spend, alerts, breaks, sent } = setUp()
  alerts.restore('usd/Agent/default/a/day', '2026-01-01', 50)
  assert.deepEqual(spend(60), [])
  breaks(true)
  assert.deepEqual(spend(20), [])
  await new Promise((done) => setImmediate(done))
  breaks(false)
  assert.deepEqual(spend(1), ['2026-01-01 80 81'])
  assert.deepEqual(sent, [])
})

test('windows that have ended in their zone are removed', async () => {
  const { spend, alerts, clock } = setUp(100, 'America/New_York')
  spend(50)
  await clock.advance(25 * 3_600_000)
  assert.equal(alerts.sentPercents().length, 1, 'it is still the first of January in New York')
  await clock.advance(4 * 3_600_000)
  assert.equal(alerts.sentPercents().length, 0)
})

test('the record of an alert has budget, percentage and window', () => {
  const { budgetOf } = setUp()
  const budget = budgetOf(100)
  assert.deepEqual(alertRecord({ budget, key: budget.prefix, window: '2026-01-01', percent: 80, spent: 81 }, 'EUR'), {
    kind: 'alert',
    alert: 'budget.threshold',
    budget: 'Agent/default/a/day',
    source: 'Agent/default/a',
    scope: 'agent',
    key: 'usd/Agent/default/a/day',
    window: '2026-01-01',
    percent: 80,
    spent: 81,
    cap: 100,
    unit: 'micros',
    currency: 'EUR',
  })
})

test('ended windows are swept a few at a time; beyond the bound each new window evicts one', async () => {
  const { alerts, clock } = setUp()
  for (let n = 0; n < 10_000; n++) alerts.restore(`usd/s${n}`, '2026-01-01', 50)
  await clock.advance(2 * 24 * 3_600_000)
  assert.deepEqual(alerts.sentPercents(), [])
  let least = 0
  for (let n = 0, before = alerts.size; n < 20_000; n++, before = alerts.size) {
    alerts.restore(`usd/t${n}`, 'life', 50)
    least = Math.min(least, alerts.size - before)
  }
  assert.deepEqual([least, alerts.size], [-1, 20_000])
  const { total } = poolTable.alerted_windows
  for (let n = 0; n <= total; n++) alerts.restore(`usd/u${n}`, 'life', 50)
  assert.ok(alerts.size <= total)
})

test('an agent at its share of windows loses its own oldest, and those of others stay', () => {
  const windows = new SharedPool({ name: 'alerted_windows', total: 6, shares: [3] })
  const alerts = new Alerts({ now: () => 0, zone: 'UTC', windows })
  alerts.restore('usd/session/default/modest/s', 'life', 50)
  for (let n = 0; n < 100; n++) alerts.restore(`usd/session/default/greedy/s${n}`, 'life', 50)
  const known = alerts.sentPercents().map(({ key }) => key.split('/').slice(3).join('/'))
  assert.deepEqual(known, ['modest/s', 'greedy/s97', 'greedy/s98', 'greedy/s99'])
  assert.equal(windows.used, alerts.size)
})

test('subjects of a template share its windows, and those of other budgets stay', () => {
  const windows = new SharedPool({ name: 'alerted_windows', total: 6, shares: [3] })
  const alerts = new Alerts({ now: () => 0, zone: 'UTC', windows })
  alerts.restore('usd/Agent/default/modest/day', '2026-01-01', 50)
  for (let n = 0; n < 100; n++) alerts.restore(`usd/each/BudgetPolicy/default/p/user/day/a/u${n}`, '2026-01-01', 50)
  assert.deepEqual(
    alerts.sentPercents().map(({ key }) => key.slice(key.lastIndexOf('/') + 1)),
    ['day', 'u97', 'u98', 'u99'],
  )
})

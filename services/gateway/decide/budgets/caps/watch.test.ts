import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { TestClock } from '@plat/core'
import type { Log } from '@plat/process'
import { tempFolder } from '@plat/testkit/local'
import { Snapshots } from '../../../call/index.ts'
import { budgetCurrencyOf } from '../currency.ts'
import { watchPricing } from '../pricing/pricing.ts'
import { watchBudgets } from './watch.ts'

const budget = {
  id: 'Agent/default/a/day',
  source: 'Agent/default/a',
  match: {},
  window: 'day',
  capMicros: 5,
  alerts: [],
}
const file = (currency: string, more: object = {}) =>
  JSON.stringify({ version: 1, currency, budgets: [{ ...budget, ...more }] })
const prices = (currency: string, id: string) => JSON.stringify({ version: 1, currency, id, models: {} })

function setUp(t: TestContext, config: { readonly budgetCurrency?: string; readonly without?: boolean } = {}) {
  const folder = tempFolder()
  const clock = new TestClock()
  const snapshots = new Snapshots()
  const lines: string[] = []
  const log: Log = {
    debug() {},
    info() {},
    warn() {},
    error: (fields, message) => lines.push(`${message}: ${'problems' in fields ? String(fields.problems) : ''}`),
    child: () => log,
  }
  const paths = { budgets: join(folder, 'budgets.json'), prices: join(folder, 'prices.json') }
  const keys = {
    budgetsFile: config.without === true ? '' : paths.budgets,
    pricingFile: paths.prices,
    budgetCurrency: config.budgetCurrency ?? '',
    policyReloadSeconds: 2,
  }
  const pricing = watchPricing({ config: keys, snapshots, clock, log })
  const watch = watchBudgets({ config: { ...keys, sessionBudgetUSD: 0.000_007 }, snapshots, clock, log })
  t.after(() => {
    pricing.stop()
    watch.stop()
  })
  const check = async () => {
    await pricing.check()
    await watch.check()
    return lines.splice(0)
  }
  const amounts = () => watch.of(snapshots.current)?.budgets.map(({ amount }) => amount) ?? null
  return { paths, keys, check, amounts }
}

test('budgets are reloaded when the file changes, and an invalid file leaves the previous ones in force', async (t) => {
  // Shows D3.cost.budgetsFile.
  const { paths, check, amounts } = setUp(t)
  assert.match((await check()).join(), /budgetsFile is refused: calls with a cost are refused: no such file/)
  assert.equal(amounts(), null)
  writeFileSync(paths.budgets, file('USD'))
  assert.deepEqual([await check(), amounts()], [[], [7, 5]])
  writeFileSync(paths.budgets, file('USD', { capMicros: -1 }))
  assert.match((await check()).join(), /the previous budgets remain in force: budgets\[0\].capMicros/)
  assert.deepEqual(amounts(), [7, 5])
  rmSync(paths.budgets)
  assert.match((await check()).join(), /remain in force: no such file/)
  writeFileSync(paths.budgets, JSON.stringify({ version: 1, currency: 'USD', budgets: [] }))
  assert.deepEqual([await check(), amounts()], [[], [7]])
})

test('without a file only the session cap applies, in any currency', async (t) => {
  const { check, amounts } = setUp(t, { without: true })
  await check()
  assert.deepEqual(amounts(), [7])
})

test('budgets in another currency than that of the prices, else USD, are refused', async (t) => {
  // Shows D3.cost.budgetCurrency, D3.error.budgetCurrency, D3.default.computed.budgetCurrency.
  const { paths, keys, check, amounts } = setUp(t)
  writeFileSync(paths.budgets, file('EUR'))
  assert.match((await check()).join('\n'), /currency: EUR, but the gateway counts in USD; nothing is converted/)
  assert.equal(amounts(), null)
  assert.equal(await budgetCurrencyOf(keys), 'USD')
  writeFileSync(paths.prices, prices('EUR', 'one'))
  assert.equal(await budgetCurrencyOf(keys), 'EUR')
  await check()
  assert.deepEqual(amounts(), [7, 5], 'the prices set the currency of the budgets')
  writeFileSync(paths.prices, prices('CHF', 'two'))
  assert.match((await check()).join('\n'), /currency: EUR, but the gateway counts in CHF/)
})

test('budgets and prices in another currency than budgetCurrency are refused', async (t) => {
  const { paths, keys, check, amounts } = setUp(t, { budgetCurrency: 'EUR' })
  writeFileSync(paths.budgets, file('USD'))
  writeFileSync(paths.prices, prices('USD', 'one'))
  const lines = (await check()).join('\n')
  assert.match(lines, /pricingFile is refused: nothing has a price: currency: USD, but budgetCurrency is EUR/)
  assert.match(lines, /budgetsFile is refused: .*currency: USD, but the gateway counts in EUR/)
  assert.equal(amounts(), null)
  writeFileSync(paths.budgets, file('EUR'))
  await check()
  assert.deepEqual(amounts(), [7, 5])
  assert.equal(await budgetCurrencyOf(keys), 'EUR')
})

test('budgetCurrencyOf returns USD if nothing readable names another currency', async () => {
  assert.equal(await budgetCurrencyOf({}), 'USD')
  assert.equal(await budgetCurrencyOf({ pricingFile: '/does/not/exist' }), 'USD')
  assert.equal(await budgetCurrencyOf({ budgetCurrency: 'JPY', pricingFile: '/does/not/exist' }), 'JPY')
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { silentLog } from '@plat/process'
import { LocalLimits, WindowCalendar } from '@plat/state'
import fastify from 'fastify'
import { createAdmin } from '../../admin/index.ts'
import { inNamespaces } from '../../testing/admin.ts'
import { localCounters } from './book/counters.ts'
import { everySession } from './caps/budget.ts'
import { BudgetTable, type Selecting } from './caps/table.ts'
import type { Each } from './caps/template.ts'
import { createBudgetRoutes } from './routes.ts'
import type { BudgetView } from './view.ts'

const dayOf = (namespace: string): Selecting => {
  const source = `BudgetPolicy/${namespace}/team`
  const kind = { scope: 'namespace', window: 'day', unit: 'micros' } as const
  return { cap: { id: `${source}/day`, source, ...kind, amount: 9, alerts: [] }, match: { namespaces: [namespace] } }
}

function served(table: BudgetTable | null) {
  const clock = new TestClock()
  const limits = new LocalLimits({ clock })
  const now = () => clock.now()
  const routes = createBudgetRoutes({
    counters: localCounters(limits),
    table: () => table,
    calendar: new WindowCalendar('UTC'),
    currency: () => 'EUR',
    now,
  })
  const frame = inNamespaces({ shop: { viewer: ['user:ada'] } })
  const ledgers = {
    of: () => {
      throw new Error('nothing is recorded')
    },
  }
  const env = { PLAT_ADMIN_TOKEN: 'the-admin-token-of-this-test-1234567890' }
  const app = fastify()
  createAdmin({ env, ...frame, ledgers, log: silentLog }).mount(app, [routes])
  const ask = async (token: string) => {
    const answer = await app.inject({ url: '/v1/budgets', headers: { authorization: `Bearer ${token}` } })
    return { status: answer.statusCode, ...answer.json() }
  }
  return { limits, clock, ask, admin: env.PLAT_ADMIN_TOKEN }
}

test('a role in one namespace shows its budgets and sessions, and nothing else', async () => {
  const table = new BudgetTable('EUR', [
    { cap: everySession(100), match: {} },
    ...['bank', 'shop', 'plat-system'].map(dayOf),
  ])
  const { limits, clock, ask, admin } = served(table)
  for (const session of ['shop/a/s', 'bank/a/s']) {
    limits.restore({ key: `usd/session/${session}`, window: 'life' }, 7, clock.now())
  }
  limits.restore({ key: 'usd/BudgetPolicy/shop/team/day', window: '2026-01-01' }, 12, clock.now())
  const idsOf = ({ items }: { items: readonly { id: string }[] }) => items.map(({ id }) => id)
  assert.deepEqual(idsOf(await ask(admin)), [
    'sessionBudgetUSD:shop/a/s',
    'sessionBudgetUSD:bank/a/s',
    'BudgetPolicy/shop/team/day',
    'BudgetPolicy/plat-system/team/day',
    'BudgetPolicy/bank/team/day',
  ])
  const seen = await ask('ada')
  assert.deepEqual(idsOf(seen), ['sessionBudgetUSD:shop/a/s', 'BudgetPolicy/shop/team/day'])
  assert.partialDeepStrictEqual(seen.items[1], {
    period: '2026-01-01',
    spent: { micros: 12, currency: 'EUR' },
    left: { micros: 0, currency: 'EUR' },
    resetsAt: '2026-01-02T00:00:00Z',
  })
  assert.partialDeepStrictEqual(seen.items[0], {
    budget: 'sessionBudgetUSD',
    source: null,
    period: 'shop/a/s',
    resetsAt: null,
  })
  assert.equal((await ask('eve')).status, 403)
})

test('a template lists each of its subjects in the current window, with its cap', async () => {
  const source = 'BudgetPolicy/shop/all'
  const kind = { scope: 'user', window: 'day', unit: 'micros', isTemplate: true } as const
  const cap = { id: `${source}/user/day`, source, ...kind, amount: 9, alerts: [] }
  const each: Each = { per: 'user', names: null, except: [{ names: ['boss'], amount: 90 }] }
  const { limits, clock, ask, admin } = served(new BudgetTable('EUR', [{ cap, match: {}, each }]))
  for (const [user, window] of [
    ['ada', '2026-01-01'],
    ['boss', '2026-01-01'],
    ['', '2026-01-01'],
    ['gone', '2025-12-31'],
  ] as const)
    limits.restore({ key: `usd/each/${cap.id}/${user}`, window }, 5, clock.now())
  const { items } = await ask(admin)
  assert.deepEqual(
    items.map(({ subject, cap, left }: BudgetView) => [subject, cap, left]),
    [
      ['boss', { micros: 90, currency: 'EUR' }, { micros: 85, currency: 'EUR' }],
      ['ada', { micros: 9, currency: 'EUR' }, { micros: 4, currency: 'EUR' }],
      ['', { micros: 9, currency: 'EUR' }, { micros: 4, currency: 'EUR' }],
    ],
  )
})

test('the list fails while budgets are not loaded', async () => {
  const { ask, admin } = served(null)
  const { status, error } = await ask(admin)
  assert.deepEqual([status, error], [503, 'state_unavailable'])
})

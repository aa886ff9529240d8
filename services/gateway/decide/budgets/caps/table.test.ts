import assert from 'node:assert/strict'
import { test } from 'node:test'
import { glob } from '@plat/core'
import { WindowCalendar } from '@plat/state'
import fc from 'fast-check'
import { testIdentity } from '../../../call/testing/identity.ts'
import { Budget, type Cap } from './budget.ts'
import { BudgetTable, type Match, type Selecting } from './table.ts'

const cap = (id: string, more: Partial<Cap> = {}): Cap => ({
  id,
  source: 'BudgetPolicy/default/p',
  scope: 'all',
  window: 'day',
  unit: 'micros',
  amount: 100,
  alerts: [],
  ...more,
})
const entry = (id: string, match: Match): Selecting => ({ cap: cap(id), match })
const idsOf = (entries: readonly Selecting[], caller: Partial<typeof testIdentity>) =>
  new BudgetTable('USD', entries).matching({ ...testIdentity, ...caller }).map(({ budget }) => budget.id)

test('a selector ORs the values of a key and ANDs its keys; an empty one selects every caller', () => {
  const entries = [
    entry('all', {}),
    entry('agents', { namespaces: ['default'], agents: ['a', 'b'] }),
    entry('elsewhere', { namespaces: ['other'], agents: ['a'] }),
    entry('full name', { agents: ['default/a', 'other/b'] }),
    entry('pattern', { agents: ['other/*', '*z'] }),
    entry('ada', { users: ['ada'] }),
    entry('users', { users: ['*'] }),
    entry('ops', { groups: ['ops', 'sre-*'] }),
    entry('ada of ops', { users: ['ada'], groups: ['ops'] }),
    entry('nothing', { users: [] }),
  ]
  assert.deepEqual(idsOf(entries, {}), ['all', 'agents', 'full name'])
  assert.deepEqual(idsOf(entries, { namespace: 'other' }), ['all', 'elsewhere', 'pattern'])
  assert.deepEqual(idsOf(entries, { agent: 'c', user: 'ada' }), ['all', 'ada', 'users'])
  assert.deepEqual(idsOf(entries, { agent: 'xyz', user: 'bob', groups: ['sre-eu'] }), [
    'all',
    'pattern',
    'users',
    'ops',
  ])
  assert.deepEqual(idsOf(entries, { agent: 'c', user: 'ada', groups: ['ops'] }).slice(1), [
    'ada',
    'users',
    'ops',
    'ada of ops',
  ])
})

const word = fc.constantFrom('a', 'b', 'ab', 'abc')
const pattern = fc.constantFrom('a', 'b', 'ab', 'abc', '*', 'a*', '*b')
const words = (of: fc.Arbitrary<string>) => fc.option(fc.array(of, { maxLength: 3 }), { nil: undefined })
const match = fc
  .record({ namespaces: words(pattern), agents: words(pattern), users: words(pattern), groups: words(pattern) })
  .map((it): Match => Object.fromEntries(Object.entries(it).filter(([, names]) => names !== undefined)))
const caller = fc.record({
  namespace: word,
  agent: word,
  user: fc.option(word, { nil: null }),
  groups: fc.array(word, { maxLength: 2 }),
})

test('the index returns the same budgets as a linear scan, in the same order', () => {
  const any = (patterns: readonly string[] | undefined, text: string) =>
    patterns === undefined || patterns.some((one) => glob(one)(text))
  fc.assert(
    fc.property(fc.array(match, { maxLength: 12 }), caller, (matches, who) => {
      const entries = matches.map((one, at) => entry(String(at), one))
      const expected = entries.filter(
        ({ match: { namespaces, agents, users, groups } }) =>
          any(namespaces, who.namespace) &&
          any(agents, who.agent) &&
          (users === undefined || (who.user !== null && any(users, who.user))) &&
          (groups === undefined || who.groups.some((group) => any(groups, group))),
      )
      assert.deepEqual(
        idsOf(entries, who),
        expected.map((one) => one.cap.id),
      )
    }),
    { numRuns: 300 },
  )
})

test('a lookup in 1,000 budgets tests only few candidates, and once per identity', () => {
  const many = Array.from({ length: 250 }, (_, at) => [
    entry(`a${at}`, { namespaces: [`n${at}`], agents: ['assistant'] }),
    entry(`u${at}`, { users: [`user${at}`] }),
    entry(`g${at}`, { groups: [`group${at}`] }),
    entry(`n${at}`, { namespaces: [`n${at}`] }),
  ]).flat()
  const table = new BudgetTable('USD', many)
  let reads = 0
  const who = {
    ...testIdentity,
    get namespace() {
      reads++
      return 'n7'
    },
    agent: 'assistant',
    user: 'user3',
    groups: ['group5'],
  }
  const first = table.matching(who)
  assert.deepEqual(
    first.map(({ budget }) => budget.id),
    ['u3', 'g5', 'a7', 'n7'],
  )
  assert.ok(reads < 20, `the namespace was read ${reads} times`)
  const before = reads
  assert.equal(table.matching(who), first)
  assert.equal(reads, before)
})

test('a session counts under its own key, and days and months under those of the zone', () => {
  const session = new Budget(cap('BudgetPolicy/default/p/session', { window: 'session' }))
  assert.equal(session.keyOf(testIdentity), 'usd/session/BudgetPolicy/default/p/session/default/a/s')
  const tokens = new Budget(cap('BudgetPolicy/default/p/day-tokens', { unit: 'tokens' }))
  assert.equal(tokens.keyOf(testIdentity), 'tokens/BudgetPolicy/default/p/day-tokens')
  const calendar = new WindowCalendar('America/New_York')
  const now = Date.UTC(2026, 11, 1, 3)
  assert.equal(tokens.windowAt(now, calendar), '2026-11-30')
  assert.equal(new Budget(cap('m', { window: 'month' })).windowAt(now, calendar), '2026-11')
  assert.equal(session.windowAt(now, calendar), 'life')
})

test('a threshold is the smallest amount that reaches its percentage', () => {
  const { thresholds } = new Budget(cap('m', { amount: 3, alerts: [100, 50, 34] }))
  assert.deepEqual(thresholds, [
    { percent: 34, amount: 2 },
    { percent: 50, amount: 2 },
    { percent: 100, amount: 3 },
  ])
  const [half] = new Budget(cap('m', { amount: Number.MAX_SAFE_INTEGER, alerts: [50] })).thresholds
  assert.equal(half?.amount, 2 ** 52)
})

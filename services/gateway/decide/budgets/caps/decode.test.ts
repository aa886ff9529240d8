import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeBudgets } from './decode.ts'

const good = {
  id: 'Agent/default/a/day',
  source: 'Agent/default/a',
  match: { namespaces: ['default'], agents: ['a'] },
  window: 'day',
  capMicros: 5,
  alerts: [50],
}
const decode = (budgets: readonly object[], more: object = {}) =>
  decodeBudgets(Buffer.from(JSON.stringify({ version: 1, currency: 'USD', budgets, ...more })))

function problems(...args: Parameters<typeof decode>): readonly string[] {
  const decoded = decode(...args)
  return 'problems' in decoded ? decoded.problems : []
}

test('a budget has an amount, a selector and a scope', () => {
  const { capMicros: _, ...rest } = good
  const scopes = [
    [good, 'agent'],
    [{ ...good, window: 'session' }, 'session'],
    [{ ...good, match: { users: ['ada'], namespaces: ['default'] } }, 'user'],
    [{ ...good, match: { groups: ['ops'] } }, 'group'],
    [{ ...good, match: { namespaces: ['default'] } }, 'namespace'],
    [{ ...good, match: {} }, 'all'],
  ] as const
  for (const [entry, scope] of scopes) {
    const decoded = decode([entry])
    assert.ok('entries' in decoded)
    assert.deepEqual([decoded.currency, decoded.entries[0]?.cap.scope], ['USD', scope])
  }
  const tokens = decode([{ ...rest, tokens: 7 }])
  assert.ok('entries' in tokens)
  assert.deepEqual(tokens.entries[0]?.cap, {
    id: good.id,
    source: good.source,
    scope: 'agent',
    window: 'day',
    unit: 'tokens',
    amount: 7,
    alerts: [50],
  })
})

test('every problem is reported with its path', () => {
  const { capMicros: _, ...capless } = good
  assert.deepEqual(problems([capless]), ['budgets[0]: needs capMicros or tokens, not both'])
  assert.deepEqual(problems([{ ...good, tokens: 1 }]), ['budgets[0]: needs capMicros or tokens, not both'])
  assert.deepEqual(problems([good, good]), ['budgets[1].id: duplicate id Agent/default/a/day'])
  assert.deepEqual(problems([{ ...good, id: 'Agent/default/ab' }]), [
    'budgets[0].id: must begin with its source, Agent/default/a/',
  ])
  for (const wrong of [
    { ...good, window: 'year' },
    { ...good, capMicros: -1 },
    { ...good, capMicros: 0.5 },
    { ...good, alerts: [0] },
    { ...good, match: { agent: ['a'] } },
    { ...good, source: 'ToolPolicy/default/a' },
  ]) {
    assert.equal(problems([wrong]).length, 1, JSON.stringify(wrong))
  }
  assert.equal(problems([], { currency: 'usd' }).length, 1)
  assert.equal(problems([], { version: 2 }).length, 1)
})

test('a template has a day or a month, and an id from which its keys can be read', () => {
  const template = { ...good, id: 'BudgetPolicy/n/p/user/day', source: 'BudgetPolicy/n/p', per: 'user', names: ['a*'] }
  const decoded = decode([{ ...template, except: [{ names: ['ada'], amount: 9 }] }])
  assert.ok('entries' in decoded)
  const [entry] = decoded.entries
  assert.deepEqual([entry?.cap.scope, entry?.cap.isTemplate, entry?.each?.names], ['user', true, ['a*']])
  const needs = ['budgets[0]: per needs a day or a month, and an id <source>/<per>/<window>']
  assert.deepEqual(problems([{ ...template, window: 'session' }]), needs)
  assert.deepEqual(problems([{ ...template, id: 'BudgetPolicy/n/p/day' }]), needs)
  assert.deepEqual(problems([{ ...good, names: ['a'] }]), ['budgets[0]: names and except need per'])
})

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

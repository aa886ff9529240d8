import assert from 'node:assert/strict'
import fc from 'fast-check'
import { filesNear, fuzzTarget } from '../../../../../test/fuzz/target.ts'
import { testIdentity } from '../../../call/testing/identity.ts'
import { decodeBudgets } from './decode.ts'
import { BudgetTable } from './table.ts'

const name = fc.oneof(
  fc.constantFrom('a', 'default', 'default/a', '*', 'a*b*', '', '__proto__'),
  fc.string({ maxLength: 8 }),
)
const names = fc.oneof({ weight: 4, arbitrary: fc.array(name, { maxLength: 3 }) }, fc.anything({ maxDepth: 1 }))
const match = fc.dictionary(fc.constantFrom('namespaces', 'agents', 'users', 'groups', 'x'), names, { maxKeys: 3 })
const amount = fc.oneof(fc.constantFrom(0, 1, -1, 0.5, 2 ** 53, Number.MAX_SAFE_INTEGER), fc.nat())
const entry = fc.record(
  {
    id: fc.constantFrom('Agent/default/a/day', 'Agent/default/a/', 'BudgetPolicy/n/p/x', 'x'),
    source: fc.constantFrom('Agent/default/a', 'BudgetPolicy/n/p', 'Agent/a'),
    match,
    window: fc.constantFrom('session', 'day', 'month', 'year'),
    capMicros: amount,
    tokens: amount,
    alerts: fc.array(fc.integer({ min: -1, max: 101 }), { maxLength: 3 }),
  },
  { requiredKeys: ['id', 'source', 'match', 'window', 'alerts'] },
)
const file = fc.record({
  version: fc.constantFrom(1, 1, 2),
  currency: fc.constantFrom('USD', 'EUR', 'usd'),
  budgets: fc.array(entry, { maxLength: 3 }),
})
const bytes = filesNear(file)

/** Accepted budgets have distinct ids, integer amounts and thresholds within the cap. */
function tryBudgets(text: Uint8Array): void {
  const decoded = decodeBudgets(text)
  if ('problems' in decoded) {
    assert.ok(decoded.problems.length > 0)
    return
  }
  const table = new BudgetTable(decoded.currency, decoded.entries)
  const found = table.matching({ ...testIdentity, user: 'a', groups: ['default'] })
  assert.equal(new Set(found.map(({ key }) => key)).size, found.length)
  for (const { budget } of found) {
    assert.ok(Number.isSafeInteger(budget.amount) && budget.amount >= 0)
    for (const { amount: at } of budget.thresholds) assert.ok(at >= 0 && at <= budget.amount)
  }
}

/** No file makes the strict decoder throw, and accepted budgets can be counted. */
export const target = fuzzTarget('gateway: budgetsFile', {
  'accepted budgets can be counted': fc.property(bytes, tryBudgets),
})

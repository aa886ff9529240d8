import type { Rec } from '@plat/ledger'
import { BUDGET_THRESHOLD, type BudgetAlert } from './alerts.ts'

/** What an alert says in the ledger (kind `alert`); of a session its name stands at the end of `key`. */
export function alertRecord({ budget, key, window, percent, spent }: BudgetAlert, currency: string): Rec {
  const { id, source, scope, unit, amount } = budget
  return {
    kind: 'alert',
    alert: BUDGET_THRESHOLD,
    budget: id,
    ...(source !== null && { source }),
    scope,
    key,
    window,
    percent,
    spent,
    cap: amount,
    unit,
    ...(unit === 'micros' && { currency }),
  }
}

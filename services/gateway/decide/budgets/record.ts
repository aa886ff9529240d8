import type { Rec } from '@plat/ledger'
import { BUDGET_THRESHOLD, type BudgetAlert } from './alerts.ts'

/** Ledger record of an alert (kind `alert`). `key` of a session budget ends with the session. */
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

/** Types of `/v1/budgets` for its clients. The CLI imports only this file. */

/** Money in millionths of a currency (ISO 4217), or tokens. */
export type BudgetAmount = { readonly micros: number; readonly currency: string } | { readonly tokens: number }

/** One budget in its current window; for per-session budgets, one session that has used it. */
export interface BudgetView {
  readonly id: string
  /** Name in denials and alerts. */
  readonly budget: string
  /** The resource, such as `BudgetPolicy/default/team`; null: `sessionBudgetUSD`. */
  readonly source: string | null
  readonly scope: string
  readonly window: 'session' | 'day' | 'month'
  /** `2026-11-20`, `2026-11`, or `<namespace>/<agent>/<session>`. */
  readonly period: string
  /** The user, group, agent, session or model that a template counts; null: the budget is not a template's. Empty: calls without one. */
  readonly subject: string | null
  /** Last use of a session or a subject, RFC 3339; null: the budget is shared. */
  readonly usedAt: string | null
  readonly cap: BudgetAmount
  readonly spent: BudgetAmount
  /** Held by calls in progress. */
  readonly held: BudgetAmount
  readonly left: BudgetAmount
  /** RFC 3339; null: never. */
  readonly resetsAt: string | null
  /** Percentages. */
  readonly alerts: readonly number[]
}

/** Returns whether a value is an item of `GET /v1/budgets`. */
export function isBudgetView(value: unknown): value is BudgetView {
  if (typeof value !== 'object' || value === null) return false
  return 'budget' in value && 'period' in value && 'cap' in value && 'left' in value
}

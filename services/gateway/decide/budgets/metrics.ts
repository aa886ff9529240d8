import type { GatewayMetrics } from '../../metrics.ts'
import type { Scope } from './caps/budget.ts'

export interface BudgetMetrics {
  /** `plat_gateway_metered_cost_usd`: all that was ever metered, in the currency. */
  metered(total: number): void
  /** `plat_gateway_budget_denied_total{scope}`. */
  denied(scope: Scope): void
  /** `plat_gateway_budget_alerts_total{scope, percent}`. */
  alerted(scope: Scope, percent: number): void
  /** `plat_gateway_rate_limited_total`. */
  rateLimited(): void
}

export function createBudgetMetrics(metrics: GatewayMetrics): BudgetMetrics {
  const total = metrics.gauge('plat_gateway_metered_cost_usd')
  const denied = metrics.counter('plat_gateway_budget_denied_total')
  const alerts = metrics.counter('plat_gateway_budget_alerts_total')
  const rateLimited = metrics.counter('plat_gateway_rate_limited_total')
  return {
    metered: (cost) => total.set({}, cost),
    denied: (scope) => denied.inc({ scope }),
    alerted: (scope, percent) => alerts.inc({ scope, percent: String(percent) }),
    rateLimited: () => rateLimited.inc({}),
  }
}

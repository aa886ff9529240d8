import type { GatewayMetrics } from '../../metrics.ts'
import type { Scope } from './caps/budget.ts'

export type BudgetMetrics = ReturnType<typeof createBudgetMetrics>

export function createBudgetMetrics(metrics: GatewayMetrics) {
  const total = metrics.gauge('plat_gateway_metered_cost_usd')
  const denied = metrics.counter('plat_gateway_budget_denied_total')
  const alerts = metrics.counter('plat_gateway_budget_alerts_total')
  const rateLimited = metrics.counter('plat_gateway_rate_limited_total')
  return {
    /** `plat_gateway_metered_cost_usd`: all that was ever metered, in the currency. */
    metered: (cost: number) => total.set({}, cost),
    denied: (scope: Scope) => denied.inc({ scope }),
    alerted: (scope: Scope, percent: number) => alerts.inc({ scope, percent: String(percent) }),
    rateLimited: () => rateLimited.inc({}),
  }
}

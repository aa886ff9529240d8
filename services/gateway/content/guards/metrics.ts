import type { GatewayMetrics } from '../../metrics.ts'
import type { GuardTarget } from './config.ts'
import type { GuardVerdict } from './guard.ts'

export interface GuardMetrics {
  /** `plat_gateway_guard_checks_total`. */
  checked(guard: string, target: GuardTarget, outcome: Exclude<GuardVerdict, 'busy'>): void
  /** `plat_gateway_guard_blocked_total`. */
  blocked(guard: string, target: GuardTarget): void
  /** `plat_gateway_guard_latency_seconds`. */
  took(guard: string, seconds: number): void
}

export function createGuardMetrics(metrics: GatewayMetrics): GuardMetrics {
  const checks = metrics.counter('plat_gateway_guard_checks_total')
  const blocked = metrics.counter('plat_gateway_guard_blocked_total')
  const latency = metrics.summary('plat_gateway_guard_latency_seconds')
  return {
    checked: (guard, target, outcome) => checks.inc({ guard, target, outcome }),
    blocked: (guard, target) => blocked.inc({ guard, target }),
    took: (guard, seconds) => latency.observe({ guard }, seconds),
  }
}

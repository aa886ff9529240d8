import type { GatewayMetrics } from '../../metrics.ts'
import type { GuardTarget } from './config.ts'
import type { GuardVerdict } from './guard.ts'

export type GuardMetrics = ReturnType<typeof createGuardMetrics>

export function createGuardMetrics(metrics: GatewayMetrics) {
  const checks = metrics.counter('plat_gateway_guard_checks_total')
  const blocked = metrics.counter('plat_gateway_guard_blocked_total')
  const latency = metrics.summary('plat_gateway_guard_latency_seconds')
  return {
    checked: (guard: string, target: GuardTarget, outcome: Exclude<GuardVerdict, 'busy'>) =>
      checks.inc({ guard, target, outcome }),
    blocked: (guard: string, target: GuardTarget) => blocked.inc({ guard, target }),
    took: (guard: string, seconds: number) => latency.observe({ guard }, seconds),
  }
}

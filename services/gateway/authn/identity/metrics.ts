import type { AuthReason } from '@plat/tokens'
import type { GatewayMetrics } from '../../metrics.ts'
import type { DpopOutcome } from './dpop.ts'

export type AuthMetrics = ReturnType<typeof createAuthMetrics>

export function createAuthMetrics(metrics: GatewayMetrics) {
  const failures = metrics.counter('plat_gateway_auth_failures_total')
  const keys = metrics.gauge('plat_gateway_trusted_keys')
  const proven = metrics.counter('plat_gateway_dpop_requests_total')
  return {
    failed: (reason: AuthReason) => failures.inc({ reason }),
    trustedKeys: (count: number) => keys.set({}, count),
    proven: (outcome: DpopOutcome) => proven.inc({ outcome }),
  }
}

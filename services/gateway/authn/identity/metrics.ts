import type { AuthReason } from '@plat/tokens'
import type { GatewayMetrics } from '../../metrics.ts'
import type { DpopOutcome } from './dpop.ts'

/** Metrics of authentication. */
export interface AuthMetrics {
  /** `plat_gateway_auth_failures_total{reason}` */
  failed(reason: AuthReason): void
  /** `plat_gateway_trusted_keys` */
  trustedKeys(count: number): void
  /** `plat_gateway_dpop_requests_total{outcome}` */
  proven(outcome: DpopOutcome): void
}

export function createAuthMetrics(metrics: GatewayMetrics): AuthMetrics {
  const failures = metrics.counter('plat_gateway_auth_failures_total')
  const keys = metrics.gauge('plat_gateway_trusted_keys')
  const proven = metrics.counter('plat_gateway_dpop_requests_total')
  return {
    failed: (reason) => failures.inc({ reason }),
    trustedKeys: (count) => keys.set({}, count),
    proven: (outcome) => proven.inc({ outcome }),
  }
}

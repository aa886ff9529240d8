import type { GatewayMetrics } from '../../metrics.ts'
import type { SkipReason } from './methods.ts'

/** Series of failover. */
export interface FailoverMetrics {
  /** `plat_gateway_model_failovers_total`: one endpoint failed and the next one was tried. */
  movedOn(route: string, from: string, to: string): void
  /** `plat_gateway_model_endpoint_skipped_total` */
  skipped(route: string, endpoint: string, reason: SkipReason): void
}

export function createFailoverMetrics(metrics: GatewayMetrics): FailoverMetrics {
  const failovers = metrics.counter('plat_gateway_model_failovers_total')
  const skips = metrics.counter('plat_gateway_model_endpoint_skipped_total')
  return {
    movedOn: (route, from, to) => failovers.inc({ route, from, to }),
    skipped: (route, endpoint, reason) => skips.inc({ route, endpoint, reason }),
  }
}

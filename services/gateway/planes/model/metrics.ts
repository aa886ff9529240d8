import type { GatewayMetrics } from '../../metrics.ts'
import type { RetryResult, SkipReason } from './methods.ts'

/** Series of retries. */
export interface RetryMetrics {
  /** `plat_gateway_model_retries_total` */
  retried(route: string, result: RetryResult): void
}

/** Series of failover. */
export interface FailoverMetrics extends RetryMetrics {
  /** `plat_gateway_model_failovers_total`: one endpoint failed and the next one was tried. */
  movedOn(route: string, from: string, to: string): void
  /** `plat_gateway_model_endpoint_skipped_total` */
  skipped(route: string, endpoint: string, reason: SkipReason): void
}

export function createFailoverMetrics(metrics: GatewayMetrics): FailoverMetrics {
  const failovers = metrics.counter('plat_gateway_model_failovers_total')
  const skips = metrics.counter('plat_gateway_model_endpoint_skipped_total')
  const retries = metrics.counter('plat_gateway_model_retries_total')
  return {
    retried: (route, result) => retries.inc({ route, result }),
    movedOn: (route, from, to) => failovers.inc({ route, from, to }),
    skipped: (route, endpoint, reason) => skips.inc({ route, endpoint, reason }),
  }
}

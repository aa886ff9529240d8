import type { GatewayMetrics } from '../../metrics.ts'

/** The count of abandoned calls, and how many were aborted because of a share. */
export interface AbandonedMetrics {
  /** `plat_gateway_mcp_abandoned_calls`. */
  abandoned(count: number): void
  /** `plat_gateway_mcp_abandoned_aborted_total`. */
  abandonedAborted(): void
}

export function createAbandonedMetrics(metrics: GatewayMetrics): AbandonedMetrics {
  const calls = metrics.gauge('plat_gateway_mcp_abandoned_calls')
  const aborted = metrics.counter('plat_gateway_mcp_abandoned_aborted_total')
  return {
    abandoned: (count) => calls.set({}, count),
    abandonedAborted: () => aborted.inc({}),
  }
}

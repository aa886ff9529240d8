import type { GatewayMetrics } from '../../metrics.ts'

export type SinkMetrics = ReturnType<typeof createSinkMetrics>

export function createSinkMetrics(metrics: GatewayMetrics) {
  const lag = metrics.gauge('plat_gateway_audit_sink_lag')
  const delivered = metrics.counter('plat_gateway_audit_sink_delivered_total')
  const errors = metrics.counter('plat_gateway_audit_sink_errors_total')
  const deadLettered = metrics.counter('plat_gateway_audit_sink_dead_lettered_total')
  return {
    lag: (sink: string, records: number) => lag.set({ sink }, records),
    delivered: (sink: string, records: number) => delivered.inc({ sink }, records),
    failed: (sink: string) => errors.inc({ sink }),
    deadLettered: (sink: string) => deadLettered.inc({ sink }),
  }
}

import type { GatewayMetrics } from '../../metrics.ts'

export interface SinkMetrics {
  lag(sink: string, records: number): void
  delivered(sink: string, records: number): void
  failed(sink: string): void
  deadLettered(sink: string): void
}

export function createSinkMetrics(metrics: GatewayMetrics): SinkMetrics {
  const lag = metrics.gauge('plat_gateway_audit_sink_lag')
  const delivered = metrics.counter('plat_gateway_audit_sink_delivered_total')
  const errors = metrics.counter('plat_gateway_audit_sink_errors_total')
  const deadLettered = metrics.counter('plat_gateway_audit_sink_dead_lettered_total')
  return {
    lag: (sink, records) => lag.set({ sink }, records),
    delivered: (sink, records) => delivered.inc({ sink }, records),
    failed: (sink) => errors.inc({ sink }),
    deadLettered: (sink) => deadLettered.inc({ sink }),
  }
}

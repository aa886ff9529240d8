import type { GatewayMetrics } from '../../metrics.ts'
import type { OfflineRule } from './stage.ts'

/** Metrics of an edge, read at each scrape. */
export interface OfflineGauges {
  unforwardedRecords(): number
  oldestUnforwardedSeconds(): number
  /** Seconds since the epoch; 0 before the first acknowledgement. */
  lastAck(): number
  ackedSeq(): number
  spoolBytes(): number
  spoolMaxBytes(): number
  spoolFull(): boolean
  connected(): boolean
}

export type OfflineMetrics = ReturnType<typeof createOfflineMetrics>

export function createOfflineMetrics(metrics: GatewayMetrics) {
  const errors = metrics.counter('plat_gateway_audit_forward_errors_total')
  const denials = metrics.counter('plat_gateway_offline_denials_total')
  const gauge = (name: ForwardGauge, read: () => number) =>
    metrics.gauge(`plat_gateway_audit_forward_${name}`).from(read)
  return {
    gauges(edge: OfflineGauges) {
      gauge('unforwarded_records', () => edge.unforwardedRecords())
      gauge('oldest_unforwarded_age_seconds', () => edge.oldestUnforwardedSeconds())
      gauge('last_ack_timestamp_seconds', () => edge.lastAck())
      gauge('acked_seq', () => edge.ackedSeq())
      gauge('spool_bytes', () => edge.spoolBytes())
      gauge('spool_max_bytes', () => edge.spoolMaxBytes())
      gauge('spool_full', () => Number(edge.spoolFull()))
      gauge('connected', () => Number(edge.connected()))
    },
    forwardFailed: () => errors.inc({}),
    denied: (rule: OfflineRule) => denials.inc({ rule }),
  }
}

type ForwardGauge =
  | 'unforwarded_records'
  | 'oldest_unforwarded_age_seconds'
  | 'last_ack_timestamp_seconds'
  | 'acked_seq'
  | 'spool_bytes'
  | 'spool_max_bytes'
  | 'spool_full'
  | 'connected'

import type { GatewayMetrics } from '../../metrics.ts'

export type AnchorMetrics = ReturnType<typeof createAnchorMetrics>

/** Gauges are those of the fleet's ledger; counters count all ledgers together. */
export function createAnchorMetrics(metrics: GatewayMetrics, tenant = '') {
  const seq = metrics.gauge('plat_gateway_audit_anchor_seq')
  const last = metrics.gauge('plat_gateway_audit_anchor_last_success_timestamp_seconds')
  const made = metrics.counter('plat_gateway_audit_anchors_total')
  const errors = metrics.counter('plat_gateway_audit_anchor_errors_total')
  return {
    /** The last record that an anchor covers, and when it was made, in seconds since the epoch. */
    anchored(upTo: number, seconds: number) {
      if (tenant !== '') return
      seq.set({}, upTo)
      last.set({}, seconds)
    },
    made: () => made.inc({}),
    failed: () => errors.inc({}),
  }
}

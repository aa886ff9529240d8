import type { GatewayMetrics } from '../../metrics.ts'
import type { CollectorMetrics } from './collector.ts'

/** Returns the series of a collector. */
export function createCollectorMetrics(metrics: GatewayMetrics): CollectorMetrics {
  const segments = metrics.counter('plat_gateway_audit_collector_segments_total')
  const refusals = metrics.counter('plat_gateway_audit_collector_refused_total')
  const seqs = metrics.gauge('plat_gateway_audit_collector_edge_seq')
  return {
    segment: (result) => segments.inc({ result }),
    refused: (reason) => refusals.inc({ reason }),
    edgeSeq: (edge, seq) => seqs.set({ edge }, seq),
  }
}

import type { GatewayMetrics } from '../../metrics.ts'
import { WAITS, type Wait } from './waits.ts'

export interface HereMetrics {
  readonly segments: number
  readonly bytes: number
  readonly held: number
  /** Age of the oldest record in a sealed segment, in seconds; 0 without one. */
  readonly oldestSeconds: number
  /** Segments that are due, by what they wait for. */
  readonly waiting: ReadonlyMap<Wait, number>
}

export type RetentionMetrics = ReturnType<typeof createRetentionMetrics>

/** Gauges are those of the fleet's ledger; counters count all ledgers together. */
export function createRetentionMetrics(metrics: GatewayMetrics, tenant = '') {
  const segments = metrics.gauge('plat_gateway_audit_segments_here').labels({})
  const bytes = metrics.gauge('plat_gateway_audit_segment_bytes').labels({})
  const held = metrics.gauge('plat_gateway_audit_segments_held').labels({})
  const oldest = metrics.gauge('plat_gateway_audit_oldest_record_seconds').labels({})
  const waiting = metrics.gauge('plat_gateway_audit_segments_waiting')
  const left = metrics.counter('plat_gateway_audit_segments_left_total')
  const failures = metrics.counter('plat_gateway_audit_retention_failures_total').labels({})
  return {
    here(state: HereMetrics) {
      if (tenant !== '') return
      segments.set(state.segments)
      bytes.set(state.bytes)
      held.set(state.held)
      oldest.set(state.oldestSeconds)
      for (const reason of WAITS) waiting.set({ reason }, state.waiting.get(reason) ?? 0)
    },
    left: (how: 'archived' | 'deleted') => left.inc({ how }),
    failed: () => failures.inc(),
  }
}

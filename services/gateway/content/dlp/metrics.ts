import type { GatewayMetrics } from '../../metrics.ts'
import type { CountHit } from './redaction.ts'

export function createHitCounter(metrics: GatewayMetrics): CountHit {
  const hits = metrics.counter('plat_gateway_dlp_hits_total')
  return (detector, direction, action) => hits.inc({ detector, direction, action })
}

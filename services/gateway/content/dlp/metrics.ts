import type { CountHit } from '../../call/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'

/** Returns the counter of the hits in one call: they are in the metric and in the records of the call. */
export type HitCounter = (call: { readonly countHit?: CountHit | undefined }) => CountHit

export function createHitCounter(metrics: GatewayMetrics): HitCounter {
  const hits = metrics.counter('plat_gateway_dlp_hits_total')
  return (call) => (detector, direction, action) => {
    hits.inc({ detector, direction, action })
    call.countHit?.(detector, direction, action)
  }
}

import type { GatewayMetrics } from '../../metrics.ts'
import type { RevocationScope, RevocationSource } from './list.ts'

export type RevocationMetrics = ReturnType<typeof createRevocationMetrics>

export function createRevocationMetrics(metrics: GatewayMetrics) {
  const revoked = metrics.counter('plat_gateway_revoked_total')
  const active = metrics.gauge('plat_gateway_revocations_active')
  const propagation = metrics.summary('plat_gateway_revocation_propagation_seconds')
  let longest = 0
  metrics.gauge('plat_gateway_revocation_propagation_max_seconds').from(() => longest)
  return {
    /** `plat_gateway_revoked_total`: once for each call that a revocation refused or ended. */
    revoked: (scope: RevocationScope) => revoked.inc({ scope }),
    active: (source: RevocationSource, count: number) => active.set({ source }, count),
    /** `plat_gateway_revocation_propagation_seconds` and its maximum: from the making of an entry until it was in force here. */
    propagated(seconds: number) {
      propagation.observe({}, seconds)
      longest = Math.max(longest, seconds)
    },
    /** `plat_gateway_revocation_list_ok`, read at each scrape. */
    listOk: (ask: () => boolean) => metrics.gauge('plat_gateway_revocation_list_ok').from(() => Number(ask())),
  }
}

import type { GatewayMetrics } from '../../metrics.ts'

export function createPolicyMetrics(metrics: GatewayMetrics) {
  const loaded = metrics.gauge('plat_gateway_policies_loaded')
  const revision = metrics.gauge('plat_gateway_policy_revision')
  const reloads = metrics.counter('plat_gateway_policy_reloads_total')
  const available = metrics.gauge('plat_gateway_cedar_available')
  const unavailable = metrics.gauge('plat_gateway_cedar_policies_unavailable')
  const tried = metrics.counter('plat_gateway_dryrun_decisions_total')
  return {
    loaded(policies: number, generation: number) {
      loaded.set({}, policies)
      revision.set({}, generation)
    },
    reloaded: (result: 'ok' | 'error') => reloads.inc({ result }),
    cedar(isAvailable: boolean, unavailablePolicies: number) {
      available.set({}, Number(isAvailable))
      unavailable.set({}, unavailablePolicies)
    },
    tried: (policy: string, would: string) => tried.inc({ policy, would }),
  }
}

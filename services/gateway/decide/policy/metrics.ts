import type { GatewayMetrics } from '../../metrics.ts'

export interface PolicyMetrics {
  /** `plat_gateway_policies_loaded` and `plat_gateway_policy_revision`. */
  loaded(policies: number, generation: number): void
  /** `plat_gateway_policy_reloads_total{result}`. */
  reloaded(result: 'ok' | 'error'): void
  /** `plat_gateway_cedar_available` and `plat_gateway_cedar_policies_unavailable`. */
  cedar(available: boolean, unavailablePolicies: number): void
  /** `plat_gateway_dryrun_decisions_total{policy,would}`. */
  tried(policy: string, would: string): void
}

export function createPolicyMetrics(metrics: GatewayMetrics): PolicyMetrics {
  const loaded = metrics.gauge('plat_gateway_policies_loaded')
  const revision = metrics.gauge('plat_gateway_policy_revision')
  const reloads = metrics.counter('plat_gateway_policy_reloads_total')
  const available = metrics.gauge('plat_gateway_cedar_available')
  const unavailable = metrics.gauge('plat_gateway_cedar_policies_unavailable')
  const tried = metrics.counter('plat_gateway_dryrun_decisions_total')
  return {
    loaded(policies, generation) {
      loaded.set({}, policies)
      revision.set({}, generation)
    },
    reloaded: (result) => reloads.inc({ result }),
    cedar(isAvailable, unavailablePolicies) {
      available.set({}, Number(isAvailable))
      unavailable.set({}, unavailablePolicies)
    },
    tried: (policy, would) => tried.inc({ policy, would }),
  }
}

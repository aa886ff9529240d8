import { createPoolMeter, type MetricRow, type PoolMeter, type Registry } from '@plat/metrics'

/** Pools of the broker that callers share; docs/limits.md explains each. */
const POOLS = ['connections', 'bootstrap_connections', 'recorded_refusals'] as const

const limits = { area: 'Identity broker', feature: '' } as const

/** Every series of the broker beside `plat_build_info`. */
export const identityMetrics = [
  {
    ...limits,
    name: 'plat_identity_pool_used',
    type: 'gauge',
    labels: { pool: POOLS },
    help: 'Units of a shared pool that callers hold',
  },
  {
    ...limits,
    name: 'plat_identity_pool_refusals_total',
    type: 'counter',
    labels: { pool: POOLS, bound: ['share', 'total'] },
    help: 'Refusals by a shared pool, by the bound that was met: the share of one caller, or the total',
  },
] as const satisfies readonly MetricRow[]

export type IdentityPools = PoolMeter<(typeof POOLS)[number]>

/** The pools of the broker as rows of its metric table. */
export function identityPools(registry: Registry<typeof identityMetrics>): IdentityPools {
  return createPoolMeter(
    registry.gauge('plat_identity_pool_used'),
    registry.counter('plat_identity_pool_refusals_total'),
  )
}

import type { PoolName, PoolObservers } from '@plat/core'
import type { Counter, Gauge } from './registry.ts'

/** Exposes the usage and refusals of a service's pools as `…_pool_used` and `…_pool_refusals_total`. */
export function createPoolMeter<P extends PoolName>(
  used: Gauge<'pool'>,
  refusals: Counter<'pool' | 'bound'>,
): PoolObservers<P> {
  return {
    of: (pool) => ({
      watch: (read) => used.labels({ pool }).from(read),
      refused: (bound) => refusals.inc({ pool, bound }),
    }),
  }
}

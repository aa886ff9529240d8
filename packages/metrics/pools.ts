import type { PoolBound } from '@plat/core'
import type { Counter, Gauge } from './registry.ts'

/** Shows how full the pools of a service are, and counts what they refuse. */
export interface PoolMeter<P extends string = string> {
  /** Reads `used` whenever the series is shown. */
  watch(pool: P, used: () => number): void
  /** Counts a refusal by the bound that was met. */
  refused(pool: P, bound: PoolBound): void
  /** The same for one pool. */
  of(pool: P): PoolObserver
}

/** Observes one pool. */
export interface PoolObserver {
  watch(used: () => number): void
  refused(bound: PoolBound): void
}

/** Takes a service's rows `…_pool_used` and `…_pool_refusals_total`. */
export function createPoolMeter<P extends string>(
  used: Gauge<'pool'>,
  refusals: Counter<'pool' | 'bound'>,
): PoolMeter<P> {
  const watch: PoolMeter<P>['watch'] = (pool, read) => used.labels({ pool }).from(read)
  const refused: PoolMeter<P>['refused'] = (pool, bound) => refusals.inc({ pool, bound })
  return {
    watch,
    refused,
    of: (pool) => ({ watch: (read) => watch(pool, read), refused: (bound) => refused(pool, bound) }),
  }
}

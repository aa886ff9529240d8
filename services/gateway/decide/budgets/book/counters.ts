import { type Counted, type Limits, type LocalLimits, SplitLimits } from '@plat/state'

/** Counters of spending and rates, local or shared by all replicas. */
export interface Counters {
  readonly limits: Limits
  /** Whether other replicas use the same counters. */
  readonly shared: boolean
  /** Returns the counters whose key starts with `prefix`. */
  counted(prefix: string): Iterable<Counted> | Promise<Iterable<Counted>>
}

/** Rates, and tokens and requests per minute. `stateBackend.counters` selects where they are counted. */
const RATE = /^(?:rate|tpm|rpm)\//

export function localCounters(limits: LocalLimits): Counters {
  return {
    limits,
    shared: false,
    *counted(prefix) {
      for (const counted of limits.counted()) if (counted.key.startsWith(prefix)) yield counted
    },
  }
}

/** Counts budgets in all replicas together, and rates too unless each replica has its own. */
export function sharedCounters(shared: Limits & Pick<Counters, 'counted'>, ownRates: LocalLimits | null): Counters {
  const isOwn = (key: string) => RATE.test(key)
  return {
    limits: ownRates === null ? shared : new SplitLimits({ isOwn, own: ownRates, others: shared }),
    shared: true,
    counted: (prefix) => shared.counted(prefix),
  }
}

import { type Counted, type Limits, type LocalLimits, SplitLimits } from '@plat/state'

/** What calls are counted by, here or in all replicas together. */
export interface Counters {
  readonly limits: Limits
  /** Other replicas count in the same budgets. */
  readonly shared: boolean
  /** What is counted of keys that begin so. */
  counted(prefix: string): Iterable<Counted> | Promise<Iterable<Counted>>
}

/** Rates, and the tokens and requests of a minute: what `stateBackend.counters` says where to count. */
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

/** Budgets in all replicas together; rates too, unless each replica counts its own. */
export function sharedCounters(shared: Limits & Pick<Counters, 'counted'>, ownRates: LocalLimits | null): Counters {
  const isOwn = (key: string) => RATE.test(key)
  return {
    limits: ownRates === null ? shared : new SplitLimits({ isOwn, own: ownRates, others: shared }),
    shared: true,
    counted: (prefix) => shared.counted(prefix),
  }
}

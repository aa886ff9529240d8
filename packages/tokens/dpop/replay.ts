import { type Clock, ExpiringMap } from '@plat/core'

/** What became of a proof's id: `fresh` exactly once, `seen` after that, `full` when nothing more can be remembered. */
export type ReplayVerdict = 'fresh' | 'seen' | 'full'

/** Remembers the ids of proofs. `use` must be atomic: of two equal proofs at the same time one is fresh. */
export interface ReplayStore {
  /** `until` in milliseconds since the epoch: the proof is too old by itself from then on. */
  use(jkt: string, jti: string, until: number): ReplayVerdict | Promise<ReplayVerdict>
}

/** Proofs that are remembered at most, about 200 bytes each. */
const MAX_PROOFS = 200_000
/** Proofs of one key: one holder of a token must not fill the store for everybody. */
const MAX_PROOFS_OF_KEY = 10_000
/** Keys that have proofs in the store. */
const MAX_KEYS = 50_000
/** The count of a key starts anew after this time, in milliseconds. */
const COUNT_MS = 120_000

export interface ReplayLimits {
  /** Proofs that are remembered at most, about 200 bytes each. */
  readonly proofs: number
  /** Proofs of one key in two minutes. */
  readonly proofsOfKey: number
}

/** Ids of proofs in the memory of one process. A full store refuses: what is not remembered could be replayed. */
export function memoryReplayStore(
  clock: Clock,
  { proofs, proofsOfKey }: ReplayLimits = { proofs: MAX_PROOFS, proofsOfKey: MAX_PROOFS_OF_KEY },
): ReplayStore {
  const seen = new ExpiringMap<true>({ clock, cap: proofs })
  const counts = new ExpiringMap<{ proofs: number }>({ clock, cap: MAX_KEYS })
  return {
    use(jkt, jti, until) {
      const count = counts.get(jkt) ?? { proofs: 0 }
      if (count.proofs >= proofsOfKey) return 'full'
      if (counts.insert(jkt, count, clock.now() + COUNT_MS) === 'full') return 'full'
      count.proofs++
      // A thumbprint has no full stop, so no other pair gives the same key.
      const verdict = seen.insert(`${jkt}.${jti}`, true, until)
      return verdict === 'inserted' ? 'fresh' : verdict === 'taken' ? 'seen' : 'full'
    },
  }
}

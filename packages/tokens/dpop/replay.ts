import { type Clock, ExpiringMap, SharedPool } from '@plat/core'

/** Result of using a proof's id: `fresh` exactly once, `seen` after that, `full` when no more can be stored. */
export type ReplayVerdict = 'fresh' | 'seen' | 'full'

export interface UsedProof {
  /** RFC 7638 thumbprint of its key. */
  readonly jkt: string
  readonly jti: string
  /** Milliseconds since the epoch: from then on the proof is too old anyway. */
  readonly until: number
  /** Whose share of the store is used. Not the key: a caller can create any number of keys. */
  readonly caller: string
}

/** Stores the ids of used proofs. `use` must be atomic: of two equal concurrent proofs one is fresh. */
export interface ReplayStore {
  use(proof: UsedProof): ReplayVerdict | Promise<ReplayVerdict>
}

/** Stores ids in the memory of one process, about 200 bytes each. A full store refuses: an id that is not stored could be replayed. */
export function memoryReplayStore(clock: Clock, pool = new SharedPool({ name: 'holder_proofs' })): ReplayStore {
  const seen = new ExpiringMap<true>({ clock, cap: pool })
  return {
    use({ jkt, jti, until, caller }) {
      // A thumbprint contains no full stop, so the key is unique for the pair.
      const verdict = seen.insert(`${jkt}.${jti}`, true, until, caller)
      return verdict === 'inserted' ? 'fresh' : verdict === 'taken' ? 'seen' : 'full'
    },
  }
}

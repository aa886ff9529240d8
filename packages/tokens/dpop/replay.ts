import { type Clock, ExpiringMap, SharedPool } from '@plat/core'

/** What became of a proof's id: `fresh` exactly once, `seen` after that, `full` when nothing more can be remembered. */
export type ReplayVerdict = 'fresh' | 'seen' | 'full'

/** A proof that is being used. */
export interface UsedProof {
  /** RFC 7638 thumbprint of its key. */
  readonly jkt: string
  readonly jti: string
  /** Milliseconds since the epoch: the proof is too old by itself from then on. */
  readonly until: number
  /** Whose share of the store it takes. Not the key: a caller makes as many keys as it likes. */
  readonly caller: string
}

/** Remembers the ids of proofs. `use` must be atomic: of two equal proofs at the same time one is fresh. */
export interface ReplayStore {
  use(proof: UsedProof): ReplayVerdict | Promise<ReplayVerdict>
}

/** Ids of proofs in the memory of one process, about 200 bytes each. A full store refuses: what is not remembered could be replayed. */
export function memoryReplayStore(clock: Clock, pool = new SharedPool({ name: 'holder_proofs' })): ReplayStore {
  const seen = new ExpiringMap<true>({ clock, cap: pool })
  return {
    use({ jkt, jti, until, caller }) {
      // A thumbprint has no full stop, so no other pair gives the same key.
      const verdict = seen.insert(`${jkt}.${jti}`, true, until, caller)
      return verdict === 'inserted' ? 'fresh' : verdict === 'taken' ? 'seen' : 'full'
    },
  }
}

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

/** Keys that each can be inserted once over all replicas. */
export interface SharedProofs {
  /** Rejects when it is not known whether the key was inserted before. */
  insert(
    key: string,
    value: string,
    until: number,
    caller: string,
  ): 'inserted' | 'taken' | 'full' | Promise<'inserted' | 'taken' | 'full'>
}

/**
 * A proof is checked first in `local`, where its caller has its share and a replay costs nothing, and then across all replicas. When the second check
 * fails the proof is used up: the client creates another one.
 */
export function sharedReplayStore(local: ReplayStore, shared: SharedProofs): ReplayStore {
  return {
    async use(proof) {
      const here = await local.use(proof)
      if (here !== 'fresh') return here
      const { jkt, jti, until, caller } = proof
      return verdictOf(await shared.insert(keyOf(jkt, jti), '', until, caller))
    },
  }
}

/** A thumbprint contains no full stop, so the key is unique for the pair. */
function keyOf(jkt: string, jti: string): string {
  return `${jkt}.${jti}`
}

function verdictOf(inserted: 'inserted' | 'taken' | 'full'): ReplayVerdict {
  return inserted === 'inserted' ? 'fresh' : inserted === 'taken' ? 'seen' : 'full'
}

/** Stores ids in the memory of one process, about 200 bytes each. A full store refuses: an id that is not stored could be replayed. */
export function memoryReplayStore(clock: Clock, pool = new SharedPool({ name: 'holder_proofs' })): ReplayStore {
  const seen = new ExpiringMap<true>({ clock, cap: pool })
  return {
    use({ jkt, jti, until, caller }) {
      return verdictOf(seen.insert(keyOf(jkt, jti), true, until, caller))
    },
  }
}

import type { OnceSets } from '@plat/state'
import type { ReplayStore } from '@plat/tokens'

/** Proofs of all replicas that are remembered at most. */
const MAX_SHARED_PROOFS = 1_000_000

/**
 * A proof is checked first here, where its caller has its share and a replay costs nothing, and then across all replicas. When the second check
 * fails the proof is used up: the client creates another one.
 */
export function sharedReplays(local: ReplayStore, sets: OnceSets): ReplayStore {
  const seen = sets.set('dpop', MAX_SHARED_PROOFS)
  return {
    async use(proof) {
      const here = await local.use(proof)
      if (here !== 'fresh') return here
      // A thumbprint has no full stop, so no other pair gives the same key.
      const verdict = await seen.insert(`${proof.jkt}.${proof.jti}`, '', proof.until)
      return verdict === 'inserted' ? 'fresh' : verdict === 'taken' ? 'seen' : 'full'
    },
  }
}

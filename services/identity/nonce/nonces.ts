import { base32, type Clock, type Ids } from '@plat/core'
import type { OnceSets } from '@plat/state'

/** How long a nonce lives, in milliseconds. */
export const NONCE_LIFE_MS = 5 * 60 * 1000
/** Nonces that are outstanding at most, about 200 bytes each. */
const MAX_NONCES = 100_000
/** 160 bits: 32 characters of base32, the longest that every platform's attested document carries. */
const NONCE_BYTES = 20

export interface IssuedNonce {
  readonly nonce: string
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
}

/** Nonces for proofs: each is good once, for the check that it was issued for. */
export interface Nonces {
  /** Null while too many are outstanding. */
  issue(check: string): Promise<IssuedNonce | null>
  /** Uses the nonce up, whatever the answer. Of several callers exactly one is told true. */
  redeem(nonce: string, check: string): Promise<boolean>
}

export interface NoncesOptions {
  readonly sets: OnceSets
  readonly clock: Clock
  readonly ids: Ids
}

/** Nonces that are good on every replica that shares the sets. */
export function createNonces({ sets, clock, ids }: NoncesOptions): Nonces {
  const outstanding = sets.set('nonce', MAX_NONCES)
  return {
    async issue(check) {
      const nonce = base32(ids.random(NONCE_BYTES))
      const expiresAt = clock.now() + NONCE_LIFE_MS
      return (await outstanding.insert(nonce, check, expiresAt)) === 'inserted' ? { nonce, expiresAt } : null
    },
    redeem: async (nonce, check) => (await outstanding.take(nonce)) === check,
  }
}

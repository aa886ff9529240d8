import { base32, type Clock, ExpiringMap, type Ids } from '@plat/core'

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
  issue(check: string): IssuedNonce | null | Promise<IssuedNonce | null>
  /** Uses the nonce up, whatever the answer. Of several callers exactly one is told true. */
  redeem(nonce: string, check: string): boolean | Promise<boolean>
}

/** Nonces in the memory of one process. */
export function memoryNonces({ clock, ids }: { readonly clock: Clock; readonly ids: Ids }): Nonces {
  const outstanding = new ExpiringMap<string>({ clock, cap: MAX_NONCES })
  return {
    issue(check) {
      const nonce = base32(ids.random(NONCE_BYTES))
      const expiresAt = clock.now() + NONCE_LIFE_MS
      return outstanding.insert(nonce, check, expiresAt) === 'inserted' ? { nonce, expiresAt } : null
    },
    redeem: (nonce, check) => outstanding.take(nonce) === check,
  }
}

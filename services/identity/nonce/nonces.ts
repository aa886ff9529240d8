import { base32, type Clock, type Ids, type PoolObserver, watchedPool } from '@plat/core'
import type { OnceSets } from '@plat/state'
import { boundNonce, NONCE_BYTES } from '@plat/tokens'

/** How long a nonce lives, in milliseconds. */
export const NONCE_LIFE_MS = 5 * 60 * 1000

export interface IssuedNonce {
  readonly nonce: string
  /** Salt of the nonce for a key; null for a nonce without a key. */
  readonly salt: string | null
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
}

/** Purpose of a nonce. */
export interface NonceUse {
  readonly check: string
  /** RFC 7638 thumbprint of the one key whose token it may prove; null: of any. */
  readonly jkt: string | null
}

/** Nonces for proofs: each is good once, for the check and the key that it was issued for. */
export interface Nonces {
  /** Returns null while too many are outstanding, of all or of `caller`: the peer address. */
  issue(use: NonceUse, caller: string): Promise<IssuedNonce | null>
  /** Uses the nonce up and returns its purpose to exactly one of several callers; null: it is unknown, used or expired. */
  redeem(nonce: string): Promise<NonceUse | null>
}

export interface NoncesOptions {
  readonly sets: OnceSets
  readonly clock: Clock
  readonly ids: Ids
  readonly observer?: PoolObserver | undefined
}

/** Nonces that are good on every replica that shares the sets. */
export function createNonces({ sets, clock, ids, observer }: NoncesOptions): Nonces {
  const outstanding = sets.set('nonce', watchedPool({ name: 'nonces', observer }))
  return {
    async issue({ check, jkt }, caller) {
      const random = base32(ids.random(NONCE_BYTES))
      const nonce = jkt === null ? random : boundNonce(random, jkt)
      const expiresAt = clock.now() + NONCE_LIFE_MS
      // No check has a space in its name.
      const use = jkt === null ? check : `${check} ${jkt}`
      if ((await outstanding.insert(nonce, use, expiresAt, caller)) !== 'inserted') return null
      return { nonce, salt: jkt === null ? null : random, expiresAt }
    },
    async redeem(nonce) {
      const [check, jkt = null] = (await outstanding.take(nonce))?.split(' ') ?? []
      return check === undefined ? null : { check, jkt }
    },
  }
}

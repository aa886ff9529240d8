import { hash } from 'node:crypto'
import { base32 } from '@plat/core'

/** 160 bits: 32 characters of base32, the longest that every platform's attested document carries. */
export const NONCE_BYTES = 20

/**
 * The nonce that is bound to a key: a hash of the key's thumbprint (RFC 7638) and of a salt that is good once. Evidence over it is evidence for
 * this key alone. Whoever makes evidence computes it from its own key and the salt that it was sent, and makes none over another nonce: so
 * nobody can have it attest for a key that is not its own.
 */
export function boundNonce(salt: string, jkt: string): string {
  return base32(hash('sha256', `plat-bound-nonce:${salt}:${jkt}`, 'buffer').subarray(0, NONCE_BYTES))
}

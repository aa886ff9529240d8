import { hash } from 'node:crypto'
import { base32 } from '@plat/core'

/** 160 bits: 32 characters of base32, the longest that every platform's attested document carries. */
export const NONCE_BYTES = 20

/**
 * Returns the nonce bound to a key: a hash of the key's thumbprint (RFC 7638) and a one-time salt. Evidence over it is evidence for this key only. A
 * prover computes it from its own key and the received salt, and signs no other nonce, so an attacker cannot make it attest for another key.
 */
export function boundNonce(salt: string, jkt: string): string {
  return base32(hash('sha256', `plat-bound-nonce:${salt}:${jkt}`, 'buffer').subarray(0, NONCE_BYTES))
}

import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { PublicKey } from '@plat/keys'
import type { Jws } from '@plat/tokens'
import { type Checkpoint, isPostQuantum } from './checkpoint.ts'
import { isSignedBy } from './note.ts'

/** Keys that a verifier trusts for checkpoints. */
export interface Trust {
  /** Public keys of signers. With an ML-DSA key among them, a proof requires a signature of such a key. */
  readonly keys: readonly PublicKey[]
  readonly hmacKey: KeyObject | null
}

/**
 * Returns true when a trusted key signed the checkpoint. Returns false when none did and nothing contradicts it, as for one from before a key
 * existed. Returns a string when a statement is forged or signed by another key.
 */
export function judgeCheckpoint({ jws, pq, hmac, note }: Checkpoint, { keys, hmacKey }: Trust): boolean | string {
  const classical = keys.filter(({ algorithm }) => !isPostQuantum(algorithm.name))
  const postQuantum = keys.filter(({ algorithm }) => isPostQuantum(algorithm.name))
  const notOurs = 'the checkpoint is not signed by the given key'
  if (classical.length > 0) {
    if (jws !== null && !isJwsSigned(jws, classical)) return notOurs
    if (note !== null && !isSignedBy(note, classical)) return notOurs
  }
  if (postQuantum.length > 0 && pq !== null && !isJwsSigned(pq, postQuantum)) return notOurs
  if (hmacKey !== null && hmac !== null && !isHmac(hmac, hmacKey)) return 'the checkpoint is not of the given HMAC key'
  if (postQuantum.length > 0) return pq !== null
  if (hmacKey !== null && hmac !== null) return true
  return classical.length > 0 && (jws !== null || note !== null)
}

/** Returns whether one of the keys signed the statement. */
export function isJwsSigned({ header, input, signature }: Jws, keys: readonly PublicKey[]): boolean {
  return keys.some(
    ({ kid, algorithm, key }) =>
      header.kid === kid && header.alg === algorithm.name && algorithm.verify(input, key, signature),
  )
}

function isHmac({ header, input, signature }: Jws, key: KeyObject): boolean {
  const expected = createHmac('sha256', key).update(input).digest()
  return header.alg === 'HS256' && signature.length === expected.length && timingSafeEqual(signature, expected)
}

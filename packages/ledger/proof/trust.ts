import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { PublicKey } from '@plat/keys'
import type { Jws } from '@plat/tokens'
import { type Checkpoint, isPostQuantum } from './checkpoint.ts'
import { isSignedBy } from './note.ts'

/** What a verifier was given to judge checkpoints by. */
export interface Trust {
  /** Public keys of signers. With an ML-DSA key among them, only what such a key signed as well is proven. */
  readonly keys: readonly PublicKey[]
  /** The key of HMAC checkpoints. */
  readonly hmacKey: KeyObject | null
}

/**
 * True: the checkpoint is signed by what is trusted. False: nothing that is trusted signed it, and nothing contradicts it either, as
 * with one from before a key was there. A text says that a statement is forged, or signed by somebody else.
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

/** True when one of the keys made the statement. */
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

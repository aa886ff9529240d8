import { createCipheriv, createDecipheriv } from 'node:crypto'
import { decodeBase64url, encodeBase64url } from '@plat/core'
import { CIPHER_KEY_BYTES, type Cipher } from './cipher.ts'

const ALGORITHM = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Bytes encrypted under a separate key, which a cipher wraps. All members except `kid` are base64url. */
export interface SealedBytes {
  readonly kid: string
  readonly key: string
  readonly nonce: string
  /** Ciphertext and tag. */
  readonly data: string
}

/** Encrypts bytes with AES-256-GCM. `context` identifies them: they open under no other. `random` returns random bytes. */
export async function sealBytes(
  plain: Uint8Array,
  { cipher, context, random }: { readonly cipher: Cipher; readonly context: string; random(bytes: number): Uint8Array },
): Promise<SealedBytes> {
  const key = random(CIPHER_KEY_BYTES)
  const nonce = random(NONCE_BYTES)
  const sealing = createCipheriv(ALGORITHM, key, nonce).setAAD(Buffer.from(context))
  const data = Buffer.concat([sealing.update(plain), sealing.final(), sealing.getAuthTag()])
  const wrapped = await cipher.wrap(key)
  return { kid: cipher.kid, key: encodeBase64url(wrapped), nonce: encodeBase64url(nonce), data: encodeBase64url(data) }
}

/** Returns null for modified bytes, another context, and a key that this cipher did not wrap. */
export async function openBytes(sealed: SealedBytes, cipher: Cipher, context: string): Promise<Uint8Array | null> {
  const [wrapped, nonce, data] = [sealed.key, sealed.nonce, sealed.data].map(decodeBase64url)
  if (!wrapped || !data || nonce?.length !== NONCE_BYTES || data.length < TAG_BYTES) return null
  const key = await cipher.unwrap(wrapped)
  if (key === null) return null
  const end = data.length - TAG_BYTES
  const opening = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES })
  opening.setAAD(Buffer.from(context)).setAuthTag(data.subarray(end))
  try {
    return Buffer.concat([opening.update(data.subarray(0, end)), opening.final()])
  } catch {
    return null
  }
}

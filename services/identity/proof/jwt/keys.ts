import { createPublicKey, type KeyObject } from 'node:crypto'
import { isObject, parseStrict } from '@plat/core'

/** Keys in one document, those of other uses included. */
const MAX_KEYS = 1024
/** Members that only a private or symmetric JWK has. */
const SECRET_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', 'priv']

/** A public key out of a JWK set. */
export interface AssertionKey {
  readonly kid: string
  /** The JWK's own `alg`; null when it names none. */
  readonly alg: string | null
  readonly key: KeyObject
}

/** Returns the entries of a JWK set (RFC 7517), unchanged. Throws if the bytes are not a JWK set. */
export function readKeySet(bytes: Uint8Array): readonly Readonly<Record<string, unknown>>[] {
  const document = parseStrict(bytes)
  if (!isObject(document) || !Array.isArray(document.keys)) throw new Error('not a JWK set')
  if (document.keys.length > MAX_KEYS) throw new Error(`more than ${MAX_KEYS} keys`)
  return document.keys.filter(isObject)
}

/** Those of the entries that verify signatures: public, of a known type, with a `kid`, and of one of these uses. */
export function signingKeys(
  entries: readonly Readonly<Record<string, unknown>>[],
  uses: readonly unknown[],
): readonly AssertionKey[] {
  const keys: AssertionKey[] = []
  for (const jwk of entries) {
    const { kid, alg = null, kty, use } = jwk
    if (typeof kid !== 'string' || typeof kty !== 'string' || !uses.includes(use)) continue
    if ((alg !== null && typeof alg !== 'string') || SECRET_MEMBERS.some((name) => name in jwk)) continue
    const key = importKey(jwk)
    if (key !== null) keys.push({ kid, alg, key })
  }
  return keys
}

function importKey(jwk: Readonly<Record<string, unknown>>): KeyObject | null {
  try {
    return createPublicKey({ format: 'jwk', key: { ...jwk } })
  } catch {
    return null
  }
}

import { createPublicKey, hash, type KeyObject } from 'node:crypto'
import { type Algorithm, algorithmOf } from './algorithms.ts'

/** Public members of a JWK (RFC 7517, RFC 8037, RFC 9964). Which ones are there depends on `kty`. */
export interface PublicJwk {
  readonly kty: string
  readonly crv?: string
  readonly x?: string
  readonly y?: string
  readonly n?: string
  readonly e?: string
  readonly alg?: string
  readonly pub?: string
}

/** A public key for verification, with its derived values. */
export interface PublicKey {
  /** RFC 7638 thumbprint. */
  readonly kid: string
  readonly algorithm: Algorithm
  readonly jwk: PublicJwk
  readonly key: KeyObject
}

/** Required members per key type, in the order in which RFC 7638 hashes them. */
const THUMBPRINT_MEMBERS: Readonly<Record<string, readonly (keyof PublicJwk)[]>> = {
  OKP: ['crv', 'kty', 'x'],
  EC: ['crv', 'kty', 'x', 'y'],
  RSA: ['e', 'kty', 'n'],
  AKP: ['alg', 'kty', 'pub'],
}

/** RFC 7638 thumbprint with SHA-256, base64url; throws when a required member is missing. */
export function thumbprint(jwk: PublicJwk): string {
  const members = Object.hasOwn(THUMBPRINT_MEMBERS, jwk.kty) ? THUMBPRINT_MEMBERS[jwk.kty] : undefined
  if (members === undefined) throw new Error(`a JWK of kty "${jwk.kty}" has no thumbprint here`)
  const required: Record<string, string> = {}
  for (const name of members) {
    const value = jwk[name]
    if (value === undefined) throw new Error(`a JWK of kty "${jwk.kty}" needs the member "${name}"`)
    required[name] = value
  }
  return hash('sha256', JSON.stringify(required), 'base64url')
}

/** Returns the public half of a key; null when its type is not supported. */
export function publicKeyOf(key: KeyObject): PublicKey | null {
  const algorithm = algorithmOf(key)
  if (algorithm === null) return null
  const half = key.type === 'private' ? createPublicKey(key) : key
  const jwk = requiredMembers(half.export({ format: 'jwk' }))
  return jwk === null ? null : { kid: thumbprint(jwk), algorithm, jwk, key: half }
}

/** Members of private or symmetric JWKs only. */
const SECRET_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', 'priv']

/**
 * Parses an untrusted public JWK. Returns null when it is malformed, its algorithm is not supported, its `alg`, `use` or `key_ops` forbid
 * verification, it has a private member, or its encoding is not canonical: each key has one text, and so one thumbprint.
 */
export function readPublicJwk(value: unknown): PublicKey | null {
  if (typeof value !== 'object' || value === null) return null
  if (SECRET_MEMBERS.some((name) => name in value)) return null
  if ('use' in value && value.use !== 'sig') return null
  if ('key_ops' in value && !(Array.isArray(value.key_ops) && value.key_ops.includes('verify'))) return null
  const given = requiredMembers(value)
  if (given === null) return null
  const found = importPublic(given)
  if (found === null || thumbprint(given) !== found.kid) return null
  if ('alg' in value && value.alg !== found.algorithm.name) return null
  return found
}

function importPublic(jwk: PublicJwk): PublicKey | null {
  try {
    return publicKeyOf(createPublicKey({ format: 'jwk', key: { ...jwk } }))
  } catch {
    return null
  }
}

/** Returns only the members that the thumbprint covers; null when one is missing. */
function requiredMembers(jwk: object): PublicJwk | null {
  if (!('kty' in jwk) || typeof jwk.kty !== 'string' || !Object.hasOwn(THUMBPRINT_MEMBERS, jwk.kty)) return null
  const { kty } = jwk
  const values = new Map<string, unknown>(Object.entries(jwk))
  const members: Record<string, string> = {}
  for (const name of THUMBPRINT_MEMBERS[kty] ?? []) {
    const value = values.get(name)
    if (typeof value !== 'string') return null
    members[name] = value
  }
  return { kty, ...members }
}

import { type KeyObject, sign, verify } from 'node:crypto'

/** The JOSE names of the algorithms that are built. */
export type AlgorithmName = 'EdDSA' | 'ES256'

/**
 * One JOSE algorithm, resolved once when a key is loaded; nothing chooses an algorithm from what a token says.
 * RFC 9864's name `Ed25519` is no row: the contract says `EdDSA`.
 */
export interface Algorithm {
  readonly name: AlgorithmName
  /** `kty` and `crv` of the JWKs that fit (RFC 7517, RFC 8037). */
  readonly kty: 'OKP' | 'EC'
  readonly crv: 'Ed25519' | 'P-256'
  sign(bytes: Uint8Array, key: KeyObject): Uint8Array
  verify(bytes: Uint8Array, key: KeyObject, signature: Uint8Array): boolean
}

/** Every algorithm that is built. RS256 (federation) and ML-DSA are rows to come. */
export const algorithms: Readonly<Record<AlgorithmName, Algorithm>> = {
  EdDSA: {
    name: 'EdDSA',
    kty: 'OKP',
    crv: 'Ed25519',
    sign: (bytes, key) => sign(null, bytes, key),
    verify: (bytes, key, signature) => verify(null, bytes, key, signature),
  },
  ES256: {
    name: 'ES256',
    kty: 'EC',
    crv: 'P-256',
    sign: (bytes, key) => sign('sha256', bytes, { key, dsaEncoding: 'ieee-p1363' }),
    verify: (bytes, key, signature) => verify('sha256', bytes, { key, dsaEncoding: 'ieee-p1363' }, signature),
  },
}

/** The algorithm that a key is for; null when none is built for its type or curve. */
export function algorithmOf(key: KeyObject): Algorithm | null {
  if (key.asymmetricKeyType === 'ed25519') return algorithms.EdDSA
  if (key.asymmetricKeyType === 'ec' && key.asymmetricKeyDetails?.namedCurve === 'prime256v1') return algorithms.ES256
  return null
}

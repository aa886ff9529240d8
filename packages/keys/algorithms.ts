import { constants, type KeyObject, sign, verify } from 'node:crypto'

/** The JOSE names of the algorithms that are built. */
export type AlgorithmName = 'EdDSA' | 'ES256' | 'RS256' | MldsaName

/** ML-DSA of FIPS 204, by its JOSE names (RFC 9964). */
export type MldsaName = 'ML-DSA-44' | 'ML-DSA-65' | 'ML-DSA-87'

/**
 * One JOSE algorithm, resolved once when a key is loaded; nothing chooses an algorithm from what a token says.
 * RFC 9864's name `Ed25519` is no row: the contract says `EdDSA`.
 */
export interface Algorithm {
  readonly name: AlgorithmName
  /** Is this a key that the algorithm may be used with? */
  fits(key: KeyObject): boolean
  sign(bytes: Uint8Array, key: KeyObject): Uint8Array
  verify(bytes: Uint8Array, key: KeyObject, signature: Uint8Array): boolean
}

/** RFC 7518 section 3.3: the least size of an RSA key. Larger ones than the other bound only cost time. In bits. */
const RSA_BITS = { least: 2048, most: 8192 } as const

/** Every algorithm that is built. Which of them may sign a session token is decided in `@plat/tokens`. */
export const algorithms: Readonly<Record<AlgorithmName, Algorithm>> = {
  EdDSA: {
    name: 'EdDSA',
    fits: (key) => key.asymmetricKeyType === 'ed25519',
    sign: (bytes, key) => sign(null, bytes, key),
    verify: (bytes, key, signature) => verify(null, bytes, key, signature),
  },
  ES256: {
    name: 'ES256',
    fits: (key) => key.asymmetricKeyType === 'ec' && key.asymmetricKeyDetails?.namedCurve === 'prime256v1',
    sign: (bytes, key) => sign('sha256', bytes, { key, dsaEncoding: 'ieee-p1363' }),
    verify: (bytes, key, signature) => verify('sha256', bytes, { key, dsaEncoding: 'ieee-p1363' }, signature),
  },
  RS256: {
    name: 'RS256',
    fits: isRsaKey,
    sign: (bytes, key) => sign('sha256', bytes, { key, padding: constants.RSA_PKCS1_PADDING }),
    verify: (bytes, key, signature) =>
      verify('sha256', bytes, { key, padding: constants.RSA_PKCS1_PADDING }, signature),
  },
  'ML-DSA-44': mldsa('ML-DSA-44'),
  'ML-DSA-65': mldsa('ML-DSA-65'),
  'ML-DSA-87': mldsa('ML-DSA-87'),
}

function isRsaKey(key: KeyObject): boolean {
  const bits = key.asymmetricKeyDetails?.modulusLength ?? 0
  return key.asymmetricKeyType === 'rsa' && bits >= RSA_BITS.least && bits <= RSA_BITS.most
}

/** RFC 9964: the pure mode with an empty context. The algorithm is part of the key. */
function mldsa(name: MldsaName): Algorithm {
  return {
    name,
    fits: (key) => key.asymmetricKeyType === name.toLowerCase(),
    sign: (bytes, key) => sign(null, bytes, key),
    verify: (bytes, key, signature) => verify(null, bytes, key, signature),
  }
}

/** The algorithm that a key is for; null when none is built for its type, curve or size. */
export function algorithmOf(key: KeyObject): Algorithm | null {
  return Object.values(algorithms).find((algorithm) => algorithm.fits(key)) ?? null
}

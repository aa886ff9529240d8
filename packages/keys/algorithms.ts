import { constants, type KeyObject, sign, verify } from 'node:crypto'

/** JOSE names of the supported algorithms. */
export type AlgorithmName = 'EdDSA' | 'ES256' | 'RS256' | MldsaName

/** ML-DSA of FIPS 204, by its JOSE names (RFC 9964). */
export type MldsaName = 'ML-DSA-44' | 'ML-DSA-65' | 'ML-DSA-87'

/**
 * One JOSE algorithm, determined when a key is loaded; never chosen by the content of a token. RFC 9864's name `Ed25519` is not supported: the
 * contract uses `EdDSA`.
 */
export interface Algorithm {
  readonly name: AlgorithmName
  /** Returns whether the algorithm applies to the key. */
  fits(key: KeyObject): boolean
  sign(bytes: Uint8Array, key: KeyObject): Uint8Array
  verify(bytes: Uint8Array, key: KeyObject, signature: Uint8Array): boolean
}

/** RFC 7518 section 3.3: minimum size of an RSA key in bits. Keys above the maximum only cost time. */
const RSA_BITS = { least: 2048, most: 8192 } as const

/** Every supported algorithm. `@plat/tokens` decides which of them may sign a session token. */
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

/** Returns the algorithm of a key; null when its type, curve or size is not supported. */
export function algorithmOf(key: KeyObject): Algorithm | null {
  return Object.values(algorithms).find((algorithm) => algorithm.fits(key)) ?? null
}

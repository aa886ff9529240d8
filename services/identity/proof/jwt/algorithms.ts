import { constants, type KeyObject, verify } from 'node:crypto'

/** How the signatures of one JOSE algorithm (RFC 7518, RFC 8037) are verified. */
export interface AssertionAlgorithm {
  /** Is this a key that the algorithm may be used with? An RSA key below 2,048 bits is none. */
  fits(key: KeyObject): boolean
  verify(bytes: Uint8Array, key: KeyObject, signature: Uint8Array): boolean
}

/** RFC 7518 section 3.3: the least size of an RSA key, in bits. */
const LEAST_RSA_BITS = 2048

/**
 * The algorithms of assertions that others sign: those of JWT-SVIDs, and EdDSA for drivers of ours. They are apart from the
 * algorithms of `@plat/keys` so that no key of another issuer can ever verify a session token.
 */
export const assertionAlgorithms: Readonly<Record<string, AssertionAlgorithm>> = {
  RS256: rsa('sha256', constants.RSA_PKCS1_PADDING),
  RS384: rsa('sha384', constants.RSA_PKCS1_PADDING),
  RS512: rsa('sha512', constants.RSA_PKCS1_PADDING),
  PS256: rsa('sha256', constants.RSA_PKCS1_PSS_PADDING),
  PS384: rsa('sha384', constants.RSA_PKCS1_PSS_PADDING),
  PS512: rsa('sha512', constants.RSA_PKCS1_PSS_PADDING),
  ES256: ecdsa('sha256', 'prime256v1'),
  ES384: ecdsa('sha384', 'secp384r1'),
  ES512: ecdsa('sha512', 'secp521r1'),
  EdDSA: {
    fits: (key) => key.asymmetricKeyType === 'ed25519',
    verify: (bytes, key, signature) => verify(null, bytes, key, signature),
  },
}

/** The algorithms that JWT-SVID section 3.1 allows. */
export const SVID_ALGORITHMS: ReadonlySet<string> = new Set(
  Object.keys(assertionAlgorithms).filter((name) => name !== 'EdDSA'),
)

function rsa(digest: string, padding: number): AssertionAlgorithm {
  const options = padding === constants.RSA_PKCS1_PSS_PADDING ? { saltLength: constants.RSA_PSS_SALTLEN_DIGEST } : {}
  return {
    fits: (key) => key.asymmetricKeyType === 'rsa' && (key.asymmetricKeyDetails?.modulusLength ?? 0) >= LEAST_RSA_BITS,
    verify: (bytes, key, signature) => verify(digest, bytes, { key, padding, ...options }, signature),
  }
}

function ecdsa(digest: string, curve: string): AssertionAlgorithm {
  return {
    fits: (key) => key.asymmetricKeyType === 'ec' && key.asymmetricKeyDetails?.namedCurve === curve,
    verify: (bytes, key, signature) => verify(digest, bytes, { key, dsaEncoding: 'ieee-p1363' }, signature),
  }
}

/** Does the signature over `bytes` hold by the algorithm of this name and the key? False for every misfit of the three. */
export function signatureHolds(
  algorithm: string,
  key: KeyObject,
  { bytes, signature }: { readonly bytes: Uint8Array; readonly signature: Uint8Array },
): boolean {
  const row = Object.hasOwn(assertionAlgorithms, algorithm) ? assertionAlgorithms[algorithm] : undefined
  return row?.fits(key) === true && row.verify(bytes, key, signature)
}

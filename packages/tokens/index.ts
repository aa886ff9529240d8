export {
  decodeClaims,
  isPrincipalVerified,
  isThumbprint,
  MAX_GROUPS,
  type PrincipalVerified,
  type SessionClaims,
} from './claims.ts'
export { type AuthReason, fault, isFault, type TokenFault } from './fault.ts'
export { type JwksSourceOptions, jwksSource, type KeyFetcher } from './jwks-source.ts'
export { isObject, type Jws, MAX_TOKEN_CHARS, parseJws, signJws } from './jws.ts'
export { joinSources, KeySet, type KeySource, staticSource } from './keyset.ts'
export { type PemSourceOptions, pemSource } from './pem-source.ts'
export { createVerifier, type Verified, type Verifier, type VerifierOptions } from './verifier.ts'

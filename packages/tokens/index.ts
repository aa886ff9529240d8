export { CLASSICAL, CLASSICAL_AND_ML_DSA, ML_DSA } from './algorithms.ts'
export {
  type Ancestry,
  agentOf,
  ancestryOf,
  type Descendant,
  decodeClaims,
  isPrincipalVerified,
  MAX_GROUPS,
  MAX_LINEAGE,
  type PrincipalVerified,
  type SessionClaims,
} from './claims.ts'
export { type DiscoveryOptions, discoverIssuer, endpointOf, type IssuerKeysOptions, issuerKeys } from './discovery.ts'
export { boundNonce, NONCE_BYTES } from './dpop/bound-nonce.ts'
export { normalHtu } from './dpop/htu.ts'
export {
  createProofVerifier,
  DPOP_ALGORITHMS,
  type DpopProof,
  PROOF_SKEW_SECONDS,
  PROOF_WINDOW_SECONDS,
  type ProofFault,
  type ProofVerifier,
  type ProofVerifierOptions,
  type ProvenRequest,
} from './dpop/proof.ts'
export {
  memoryReplayStore,
  type ReplayStore,
  type ReplayVerdict,
  sharedReplayStore,
  type UsedProof,
} from './dpop/replay.ts'
export { type AuthReason, fault, isFault, type TokenFault } from './fault.ts'
export { type JwksSourceOptions, jwksSource, type KeyFetcher, type KeyLog } from './jwks-source.ts'
export { type CompactJws, type Jws, MAX_TOKEN_CHARS, parseCompact, parseJws, signJws } from './jws.ts'
export { joinSources, KeySet, type KeySource, staticSource } from './keyset.ts'
export {
  audienceClaim,
  boundKeyClaim,
  claimAt,
  InvalidClaimError,
  isText,
  isThumbprint,
  type Members,
  optionalClaim,
  plainClaim,
  readingClaims,
  secondsClaim,
  type TimedClaims,
  textClaim,
  textClaimAt,
  timedClaims,
  userClaim,
  wordsClaim,
} from './members.ts'
export { type PemSourceOptions, pemSource } from './pem-source.ts'
export { PresentedToken } from './presented-token.ts'
export { type KeyTenants, noKeyTenants, type TenantLookup } from './tenants/key-tenants.ts'
export { decodeTenants, isTenantName, noTenants, type Tenants } from './tenants/tenants-file.ts'
export { decodeTransaction, TRANSACTION_TYPE, type TransactionClaims } from './transaction/claims.ts'
export {
  createJwtVerifier,
  createVerifier,
  type JwtVerifierOptions,
  type VerificationResult,
  type Verifier,
  type VerifierOptions,
} from './verifier.ts'

import type { AlgorithmName } from '@plat/keys'

/** The algorithms of session tokens (docs/spec/broker-api.md, "Session token") when nothing else is enabled. */
export const CLASSICAL: ReadonlySet<AlgorithmName> = new Set(['EdDSA'] as const)

/** ML-DSA of FIPS 204, for those who enable it. */
export const ML_DSA: ReadonlySet<AlgorithmName> = new Set(['ML-DSA-44', 'ML-DSA-65', 'ML-DSA-87'] as const)

/** Both. ES256 and RS256 are in neither: a federation or DPoP key never verifies a session. */
export const CLASSICAL_AND_ML_DSA: ReadonlySet<AlgorithmName> = new Set([...CLASSICAL, ...ML_DSA])

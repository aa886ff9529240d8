import type { AlgorithmName, PublicKey } from '@plat/keys'
import type { Jws } from '@plat/tokens'

/** Which signatures a bundle must have (docs/spec/gateway.md, `configBundle.signaturePolicy`). */
export type SignaturePolicy = 'classical' | 'hybrid' | 'pq'

/** Kinds of keys from which each policy requires a signature. */
const KINDS: Readonly<Record<SignaturePolicy, readonly Kind[]>> = {
  classical: ['classical'],
  hybrid: ['classical', 'pq'],
  pq: ['pq'],
}

type Kind = 'classical' | 'pq'

const ALGORITHMS: Readonly<Record<Kind, readonly AlgorithmName[]>> = {
  classical: ['EdDSA', 'ES256', 'RS256'],
  pq: ['ML-DSA-44', 'ML-DSA-65', 'ML-DSA-87'],
}

/** Returns the algorithms required by a policy: one signature from each list. */
export function algorithmsOf(policy: SignaturePolicy): readonly (readonly AlgorithmName[])[] {
  return KINDS[policy].map((kind) => ALGORITHMS[kind])
}

/** Trusted keys by thumbprint. */
export interface BundleKeys {
  find(kid: string): PublicKey | null
}

/**
 * Returns whether trusted keys signed as the policy requires. Signatures of other keys are ignored: during a key change, bundles are signed with the
 * old and the new key.
 */
export function isSigned(signatures: readonly Jws[], keys: BundleKeys, policy: SignaturePolicy): boolean {
  const good = signatures.filter(({ header, input, signature }) => {
    const key = header.kid === null ? null : keys.find(header.kid)
    return key?.algorithm.name === header.alg && key.algorithm.verify(input, key.key, signature)
  })
  return algorithmsOf(policy).every((names) => good.some(({ header }) => names.some((name) => name === header.alg)))
}

import type { IncomingMessage } from 'node:http'
import { CodedRefusalError, publicUrl } from '@plat/http/endpoints'
import { DPOP_ALGORITHMS, type DpopProof, type ProofVerifier } from '@plat/tokens'
import type { Release } from '../release/release.ts'

export interface PossessionParts {
  readonly proofs: ProofVerifier
  /** Empty: scheme and host of each request. */
  readonly publicUrl: string
}

/**
 * Verifies the DPoP proof of this request (RFC 9449): its `jkt` is the workload's key. With a token the proof must cover it. The proof is not stored
 * yet: `useProof` does that after all other checks. Throws `invalid_key`.
 */
export function checkProof(
  { proofs, publicUrl: configured }: PossessionParts,
  request: IncomingMessage,
  { path, token = null }: { readonly path: string; readonly token?: string | null },
): DpopProof {
  const proof = proofs.check({
    headers: request.headersDistinct.dpop ?? [],
    method: 'POST',
    url: publicUrl(configured, request) + path,
    accessToken: token ?? '',
    ath: token === null ? 'optional' : 'required',
  })
  if (proof.kind === 'proofFault') throw invalidKey(proof.message)
  return proof
}

/**
 * Stores the proof, so that it is valid once, in the share of the release. Throws `busy` when the share is exhausted, and `invalid_key` for a
 * replay.
 */
export async function useProof({ proofs }: PossessionParts, releaseId: string, proof: DpopProof): Promise<void> {
  const fault = await proofs.use(proof, releaseId)
  if (fault === null) return
  if (fault.why === 'replayed') throw invalidKey(fault.message)
  throw new CodedRefusalError(429, 'busy', 'too many proofs were used: try again', { 'retry-after': '60' })
}

/** A session that holds a token attests for its own key only. Throws `other_key`. */
export function refuseOtherKey({ holder }: Release, jkt: string): void {
  if (holder === null || holder.jkt === jkt) return
  throw new CodedRefusalError(403, 'other_key', 'the release was redeemed with another key')
}

function invalidKey(message: string): CodedRefusalError {
  return new CodedRefusalError(401, 'invalid_key', message, {
    'www-authenticate': `DPoP algs="${DPOP_ALGORITHMS.join(' ')}", error="invalid_dpop_proof"`,
  })
}

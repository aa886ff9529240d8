import type { IncomingMessage } from 'node:http'
import { CodedRefusal, publicUrl } from '@plat/http/endpoints'
import { DPOP_ALGORITHMS, type ProofVerifier } from '@plat/tokens'
import type { Release } from '../release/release.ts'

export interface PossessionParts {
  readonly proofs: ProofVerifier
  /** Empty: scheme and host of each request. */
  readonly publicUrl: string
}

/**
 * The key that the workload shows to hold by its DPoP proof over this very request (RFC 9449): its thumbprint. With a token the proof has to be
 * over the token too. Throws `invalid_key`.
 */
export async function heldKey(
  { proofs, publicUrl: configured }: PossessionParts,
  request: IncomingMessage,
  { path, token = null }: { readonly path: string; readonly token?: string | null },
): Promise<string> {
  const proof = proofs.check({
    headers: request.headersDistinct.dpop ?? [],
    method: 'POST',
    url: publicUrl(configured, request) + path,
    accessToken: token ?? '',
    ath: token === null ? 'optional' : 'required',
  })
  if (proof.kind === 'proofFault') throw invalidKey(proof.message)
  const fault = await proofs.use(proof)
  if (fault !== null) throw invalidKey(fault.message)
  return proof.jkt
}

/** A session that holds a token attests for its own key alone. Throws `other_key`. */
export function refuseOtherKey({ holder }: Release, jkt: string): void {
  if (holder === null || holder.jkt === jkt) return
  throw new CodedRefusal(403, 'other_key', 'the release was redeemed with another key')
}

function invalidKey(message: string): CodedRefusal {
  return new CodedRefusal(401, 'invalid_key', message, {
    'www-authenticate': `DPoP algs="${DPOP_ALGORITHMS.join(' ')}", error="invalid_dpop_proof"`,
  })
}

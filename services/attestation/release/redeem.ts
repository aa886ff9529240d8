import type { IncomingMessage } from 'node:http'
import { rfc3339 } from '@plat/core'
import { CodedRefusalError, type Endpoint } from '@plat/http/endpoints'
import { type AuditParts, recordDone } from '../audit.ts'
import type { Challenges } from '../challenge/challenges.ts'
import { counted } from '../counted.ts'
import { appraise, refuseChange } from '../evidence/appraise.ts'
import type { Minted } from '../evidence/broker.ts'
import { type MintParts, mintFor, refuseRevoked, renewalTime } from '../evidence/mint.ts'
import { checkProof, type PossessionParts, refuseOtherKey, useProof } from '../evidence/possession.ts'
import { decodeEvidence, type EvidenceRequest } from '../evidence/request.ts'
import type { AttestationRegistry } from '../metrics.ts'
import { liveRelease } from './find.ts'
import type { Release } from './release.ts'
import type { Releases } from './releases.ts'

const PATH = '/v1/redeem'

/** Dependencies of redemptions and renewals. */
export interface ReleaseParts extends AuditParts, PossessionParts, MintParts {
  readonly releases: Releases
  readonly challenges: Challenges
  readonly registry: AttestationRegistry
}

/** Received evidence, and the key of its sender. */
export interface Evidence extends EvidenceRequest {
  readonly jkt: string
}

/**
 * `POST /v1/redeem`: find the release, check the key, use the nonce up, have the evidence verified and a token minted, appraise, check revocations,
 * record, release. The first key wins; the same key may redeem again with fresh evidence when a response was lost.
 */
export function redeemEndpoint(parts: ReleaseParts): Endpoint {
  const { registry } = parts
  return {
    path: PATH,
    opensWith: 'request',
    takes: 'json',
    errors: 'coded',
    isNewWork: true,
    handle: (bytes, request) =>
      counted({
        parts,
        event: 'redeem',
        work: (about) => redeem(parts, { bytes, request, about }),
        succeeded: () => registry.counter('plat_attest_success_total').inc(),
        failed: (reason) => registry.counter('plat_attest_failure_total').inc({ reason }),
      }),
  }
}

/** A request of a workload, as its endpoint got it. */
export interface RedeemRequest {
  readonly bytes: Uint8Array
  readonly request: IncomingMessage
  /** Called with the release, for the record of a refusal. */
  about(release: Release): void
}

async function redeem(parts: ReleaseParts, { bytes, request, about }: RedeemRequest): Promise<object> {
  const requested = decodeEvidence(bytes)
  const { name } = liveRelease(parts.releases, requested.releaseId)
  const proof = checkProof(parts, request, { path: PATH })
  const { jkt } = proof
  return parts.releases.alone(name, async () => {
    const release = liveRelease(parts.releases, requested.releaseId)
    about(release)
    refuseOtherKey(release, jkt)
    await useProof(parts, requested.releaseId, proof)
    const evidence = { ...requested, jkt }
    useNonce(parts, evidence)
    const minted = await mintFor(parts, release, evidence)
    appraise(release, minted.result)
    refuseChange(release, minted.result)
    await refuseRevokedToken(parts, minted)
    await hold(parts, release, { event: 'redeem', minted, evidence })
    return answerOf(parts, minted)
  })
}

/** Uses the challenge up, whatever the evidence. Throws `invalid_nonce`. */
export function useNonce({ challenges }: ReleaseParts, { nonce, releaseId, check, jkt }: Evidence): void {
  if (challenges.redeem(nonce, { releaseId, check, jkt })) return
  throw new CodedRefusalError(
    403,
    'invalid_nonce',
    'the nonce is unknown, used, expired, or of another release, check or key',
  )
}

/** The broker mints for revoked sessions as well, so the minted token is verified before it is released. */
async function refuseRevokedToken({ broker, log }: ReleaseParts, { token, jti }: Minted): Promise<void> {
  const fault = refuseRevoked(await broker.verify(token))
  if (fault === null) return
  log.error({ jti, fault }, 'the broker refuses the token that it minted')
  throw new CodedRefusalError(503, 'unavailable', 'the identity broker cannot answer: try again', {
    'retry-after': '5',
  })
}

interface Held {
  readonly event: 'redeem' | 'renew'
  readonly minted: Minted
  readonly evidence: Evidence
}

/** Makes the record and the release durable before the token is returned. */
export async function hold(parts: ReleaseParts, release: Release, { event, minted, evidence }: Held): Promise<void> {
  const { jti, expiresAt, result } = minted
  const { jkt, check } = evidence
  await recordDone(parts, event, release, { jti, expiresAt, check, jkt, ...digestOf(result) })
  await parts.releases.write({ ...release, holder: { jkt, jti, tokenEndsAt: Date.parse(expiresAt), result } })
}

function digestOf({ digest }: Minted['result']): { digest?: string } {
  return digest === undefined ? {} : { digest }
}

/** Returns the response to a workload: its token, and when to renew. */
export function answerOf({ clock }: ReleaseParts, minted: Minted): object {
  const { token, jti, spiffeId, expiresAt, result } = minted
  const renewAt = rfc3339(renewalTime(minted, clock.now()))
  return { token, tokenType: 'DPoP', expiresAt, renewAt, spiffeId, jti, substrate: result }
}

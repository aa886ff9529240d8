import type { IncomingMessage } from 'node:http'
import { Body, CodedRefusalError, type Endpoint, overloadedRefusal } from '@plat/http/endpoints'
import type { OverloadState } from '@plat/process'
import type { BoundNonce, Broker } from '../evidence/broker.ts'
import { checkProof, type PossessionParts, refuseOtherKey, useProof } from '../evidence/possession.ts'
import { liveRelease } from '../release/find.ts'
import type { Release } from '../release/release.ts'
import type { Releases } from '../release/releases.ts'
import { releaseIdIn } from '../release/request.ts'
import type { Challenges } from './challenges.ts'

const PATH = '/v1/challenge'
const FIELDS: ReadonlySet<string> = new Set(['releaseId', 'check'])

export interface ChallengeParts extends PossessionParts {
  readonly releases: Releases
  readonly challenges: Challenges
  readonly broker: Broker
  readonly overload: Pick<OverloadState, 'active'>
}

/**
 * `POST /v1/challenge`: returns the nonce for fresh evidence. It is valid once and for five minutes, for this release, this check and the key of the
 * request's DPoP proof; `salt` shows its binding to the key.
 */
export function challengeEndpoint(parts: ChallengeParts): Endpoint {
  return {
    path: PATH,
    opensWith: 'request',
    takes: 'json',
    errors: 'coded',
    handle: (bytes, request) => challenge(parts, bytes, request),
  }
}

async function challenge(parts: ChallengeParts, bytes: Uint8Array, request: IncomingMessage) {
  const { releaseId, check } = decode(bytes)
  const release = liveRelease(parts.releases, releaseId)
  // A renewal is not new work: without a challenge the session would end.
  if (release.holder === null && parts.overload.active) throw overloadedRefusal('coded')
  refuseCheck(release, check)
  const proof = checkProof(parts, request, { path: PATH })
  const { jkt } = proof
  refuseOtherKey(release, jkt)
  await useProof(parts, releaseId, proof)
  const issued = await nonceFor(parts, { releaseId, check, jkt })
  return { check, ...issued }
}

function decode(bytes: Uint8Array): { readonly releaseId: string; readonly check: string } {
  const body = Body.parse(bytes, FIELDS)
  const releaseId = releaseIdIn(body)
  const check = body.text('check')
  if (check === null || check === '') throw new CodedRefusalError(400, 'invalid_request', 'check is required')
  return { releaseId, check }
}

function refuseCheck({ checks }: Release, check: string): void {
  if (checks.includes(check)) return
  throw new CodedRefusalError(403, 'check_refused', `the release takes evidence of ${checks.join(', ')}`)
}

async function nonceFor(
  { challenges, broker }: ChallengeParts,
  requested: { readonly releaseId: string; readonly check: string; readonly jkt: string },
): Promise<BoundNonce> {
  const full = () =>
    new CodedRefusalError(429, 'too_many_challenges', 'too many challenges are outstanding', { 'retry-after': '10' })
  if (!challenges.admit(requested.releaseId)) throw full()
  const issued = await broker.nonce(requested.check, requested.jkt)
  if (!challenges.keep(issued.nonce, requested)) throw full()
  return issued
}

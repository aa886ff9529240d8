import type { IncomingMessage } from 'node:http'
import { isObject } from '@plat/core'
import { CodedRefusalError, type Endpoint } from '@plat/http/endpoints'
import { DPOP_ALGORITHMS, type DpopProof, type Members } from '@plat/tokens'
import { recordDone } from '../audit.ts'
import { counted } from '../counted.ts'
import { appraise, refuseChange } from '../evidence/appraise.ts'
import { mintFor, refuseRevoked } from '../evidence/mint.ts'
import { checkProof, refuseOtherKey, useProof } from '../evidence/possession.ts'
import { decodeEvidence } from '../evidence/request.ts'
import { liveRelease } from '../release/find.ts'
import { answerOf, type Evidence, hold, type RedeemRequest, type ReleaseParts, useNonce } from '../release/redeem.ts'
import type { EndReason, Release } from '../release/release.ts'
import type { Revoker } from './revoker.ts'

const PATH = '/v1/renew'
const DPOP = /^dpop +([^ ]+)$/i

/** Refusals that are a verdict on the platform or the session: they end the renewal. */
const VERDICTS: ReadonlySet<string> = new Set<EndReason>([
  'evidence_refused',
  'measurement_refused',
  'platform_changed',
  'session_revoked',
])

export interface RenewParts extends ReleaseParts {
  readonly revoker: Revoker
}

/**
 * `POST /v1/renew`: returns a new token for the session that holds one, for fresh evidence of the same platform by the same key. A verdict against
 * it ends the renewal, and with `-revoke-url` the session; a faulty request or an unreachable service does not.
 */
export function renewEndpoint(parts: RenewParts): Endpoint {
  const { registry } = parts
  return {
    path: PATH,
    opensWith: 'request',
    takes: 'json',
    errors: 'coded',
    handle: (bytes, request) =>
      counted({
        parts,
        event: 'renew',
        work: (about) => renew(parts, { bytes, request, about }),
        succeeded: () => registry.counter('plat_attest_renewal_success_total').inc(),
        failed: (reason) => registry.counter('plat_attest_renewal_failure_total').inc({ reason }),
      }),
  }
}

async function renew(parts: RenewParts, { bytes, request, about }: RedeemRequest): Promise<object> {
  const requested = decodeEvidence(bytes)
  const { name } = heldRelease(parts, requested.releaseId)
  const token = tokenOf(request)
  const proof = checkProof(parts, request, { path: PATH, token })
  const { jkt } = proof
  return parts.releases.alone(name, async () => {
    const release = heldRelease(parts, requested.releaseId)
    about(release)
    refuseOtherKey(release, jkt)
    try {
      return await judge(parts, release, { evidence: { ...requested, jkt }, token, proof })
    } catch (error) {
      await endAfter(parts, release, error)
      throw error
    }
  })
}

/** Steps whose refusal may end the session: the caller holds its key. */
async function judge(
  parts: RenewParts,
  release: Release,
  { evidence, token, proof }: { readonly evidence: Evidence; readonly token: string; readonly proof: DpopProof },
): Promise<object> {
  // The token is checked first, so that a caller without one cannot fill the store of proofs.
  await refuseToken(parts, release, token)
  await useProof(parts, release.id, proof)
  useNonce(parts, evidence)
  const minted = await mintFor(parts, release, evidence)
  appraise(release, minted.result)
  refuseChange(release, minted.result)
  await hold(parts, release, { event: 'renew', minted, evidence })
  return answerOf(parts, minted)
}

function heldRelease({ releases }: RenewParts, id: string): Release {
  const release = liveRelease(releases, id)
  if (release.holder !== null) return release
  throw new CodedRefusalError(404, 'unknown_release', 'the release was not redeemed yet')
}

function tokenOf({ headers }: IncomingMessage): string {
  const token = DPOP.exec(headers.authorization ?? '')?.[1]
  if (token === undefined) throw invalidToken('Authorization must be DPoP with the token of the session')
  return token
}

/** Checks that the renewed token is valid, of this session, and bound to the key of the release. */
async function refuseToken({ broker }: RenewParts, { name, holder }: Release, token: string): Promise<void> {
  const verdict = await broker.verify(token)
  const fault = refuseRevoked(verdict)
  if (fault !== null) throw invalidToken(fault)
  const claims: Members = 'claims' in verdict ? verdict.claims : {}
  const { plat_ns, plat_agent, plat_session, cnf } = claims
  const isOfSession = plat_ns === name.namespace && plat_agent === name.agent && plat_session === name.session
  const isOfKey = isObject(cnf) && cnf.jkt === holder?.jkt
  if (!isOfSession || !isOfKey) throw invalidToken('the token is not that of the release')
}

/** Ends the renewal after a verdict. If that cannot be written, the token lapses. */
async function endAfter(parts: RenewParts, release: Release, error: unknown): Promise<void> {
  const why = error instanceof CodedRefusalError ? error.code : ''
  if (!isVerdict(why)) return
  await parts.releases.end(release, why).catch((fault: unknown) => {
    parts.log.error({ err: fault, releaseId: release.id }, 'the end of a renewal was not recorded')
  })
  await recordDone(parts, 'end', release, { reason: why }).catch(() => {})
  // The session is revoked already when that is the reason.
  if (why !== 'session_revoked') parts.revoker.revoke(release, why)
}

function isVerdict(code: string): code is EndReason {
  return VERDICTS.has(code)
}

function invalidToken(message: string): CodedRefusalError {
  return new CodedRefusalError(401, 'invalid_token', message, {
    'www-authenticate': `DPoP algs="${DPOP_ALGORITHMS.join(' ')}", error="invalid_token"`,
  })
}

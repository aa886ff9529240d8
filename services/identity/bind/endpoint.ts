import type { IncomingMessage } from 'node:http'
import { rfc3339 } from '@plat/core'
import { type Endpoint, OAuthError, publicUrl } from '@plat/http/endpoints'
import { agentOf, DPOP_ALGORITHMS, type DpopProof, type ProofVerifier, type SessionClaims } from '@plat/tokens'
import type { IdentitySettings } from '../flags.ts'
import { signToken } from '../keys/sign.ts'
import type { Tenancy } from '../keys/tenancy.ts'
import { type AuditParts, recordIssued, recordRefused } from '../serve/audit.ts'
import { isSessionFault, type Sessions } from '../sessions/sessions.ts'
import { type BindRecords, boundKey } from './records.ts'

const PATH = '/v1/token/bind'
const BEARER = /^bearer +([^ ]+)$/i

export interface BindParts extends AuditParts {
  readonly settings: IdentitySettings
  readonly sessions: Sessions
  readonly tenancy: Tenancy
  readonly proofs: ProofVerifier
  readonly records: BindRecords
}

/** docs/spec/broker-api.md, `POST /v1/token/bind`, response 200. */
interface Bound {
  readonly token: string
  readonly tokenType: 'DPoP'
  readonly expiresAt: string
  readonly jti: string
  readonly jkt: string
}

/** `POST /v1/token/bind`: takes the bearer token and a proof over it, returns the same token bound to the proof's key. */
export function bindEndpoint(parts: BindParts): Endpoint {
  return {
    path: PATH,
    opensWith: 'request',
    takes: 'any',
    errors: 'oauth',
    isNewWork: true,
    async handle(_body, request) {
      const who = {}
      try {
        return await bind(parts, request, who)
      } catch (error) {
        if (!(error instanceof OAuthError)) throw error
        recordRefused(parts, 'bind', error, who)
        throw refused(error.status, error.code, error.message)
      }
    },
  }
}

/** `who` is filled in for the record as soon as the token is known. */
async function bind(parts: BindParts, request: IncomingMessage, who: object): Promise<Bound> {
  const token = bearerToken(request)
  const claims = await sessionOf(parts, token)
  Object.assign(who, { sub: claims.subject, jti: claims.jti })
  refuseDerived(claims)
  const proof = checkProof(parts, request, token)
  refuseBound(await boundKey(claims, parts.records), proof)
  const bound = await sign(parts, claims, proof.jkt)
  await useProof(parts, proof, claims)
  await record(parts, claims, proof)
  const { jti, subject: sub, user, scopes } = claims
  await recordIssued(parts, 'bind', { jti, sub, user, scope: scopes.join(' '), expiresAt: bound.expiresAt })
  return bound
}

function bearerToken({ headers }: IncomingMessage): string {
  const token = BEARER.exec(headers.authorization ?? '')?.[1]
  if (token === undefined) throw refused(401, 'invalid_token', 'Authorization must be Bearer with a session token')
  return token
}

async function sessionOf({ sessions }: BindParts, token: string): Promise<SessionClaims> {
  const answer = await sessions.verify(token)
  if (!isSessionFault(answer)) return answer
  if (answer.reason === 'unavailable') throw refused(503, 'temporarily_unavailable', answer.message)
  if (answer.reason === 'audience') throw refused(400, 'invalid_grant', answer.message)
  throw refused(401, 'invalid_token', answer.message)
}

function refuseDerived({ parentJti, delegatorJti }: SessionClaims): void {
  if (parentJti === null && delegatorJti === null) return
  throw refused(400, 'invalid_grant', 'an exchanged or delegated token cannot be bound')
}

function checkProof({ settings, proofs }: BindParts, request: IncomingMessage, token: string): DpopProof {
  const answer = proofs.check({
    headers: request.headersDistinct.dpop ?? [],
    method: 'POST',
    url: publicUrl(settings.publicUrl, request) + PATH,
    accessToken: token,
    ath: 'required',
  })
  if (answer.kind === 'proofFault') throw refused(400, 'invalid_dpop_proof', answer.message)
  return answer
}

/** docs/spec/broker-api.md, "States": bound to this key already, or to another. */
function refuseBound(boundTo: string | null, { jkt }: DpopProof): void {
  if (boundTo === null) return
  if (boundTo === jkt) throw refused(400, 'invalid_request', 'the token is bound already')
  throw refused(409, 'invalid_grant', 'the token is bound to another key')
}

/** The bound token is the same token: its `jti`, its times, and `cnf` beside what it says. */
async function sign({ tenancy }: BindParts, claims: SessionClaims, jkt: string): Promise<Bound> {
  const signer = tenancy.signerFor(claims.namespace)
  if (signer === null) throw unsigned('the signing key of the tenant is not available')
  const bound = { ...claims.members, cnf: { jkt } }
  return {
    token: await signToken(signer, { claims: bound, namespace: claims.namespace, refuse: unsigned }),
    tokenType: 'DPoP',
    expiresAt: rfc3339(claims.expiresAt * 1000),
    jti: claims.jti,
    jkt,
  }
}

function unsigned(message: string): OAuthError {
  return refused(503, 'temporarily_unavailable', message)
}

async function useProof({ proofs }: BindParts, proof: DpopProof, claims: SessionClaims): Promise<void> {
  const fault = await proofs.use(proof, agentOf(claims))
  if (fault !== null) throw refused(400, 'invalid_dpop_proof', fault.message)
}

/** The first bind wins; a later one, however close, gets the response for a bound token. */
async function record({ records }: BindParts, claims: SessionClaims, proof: DpopProof): Promise<void> {
  const verdict = await records.insert(claims, proof.jkt)
  if (verdict === 'inserted') return
  if (verdict === 'full') throw refused(503, 'temporarily_unavailable', 'too many tokens are bound: try again later')
  refuseBound((await records.find(claims.jti)) ?? proof.jkt, proof)
}

/** Every refusal carries the challenge (RFC 9449, section 7.1). */
function refused(status: number, code: string, description: string): OAuthError {
  return new OAuthError(status, code, description, {
    'www-authenticate': `DPoP algs="${DPOP_ALGORITHMS.join(' ')}", error="${code}"`,
  })
}

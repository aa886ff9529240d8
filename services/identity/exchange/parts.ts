import type { IncomingMessage } from 'node:http'
import { type Clock, type Ids, whenReady } from '@plat/core'
import { OAuthError, publicUrl } from '@plat/http/endpoints'
import { agentOf, type ProofVerifier, type SessionClaims } from '@plat/tokens'
import { type BindRecords, boundKey } from '../bind/records.ts'
import type { IdentitySettings } from '../flags.ts'
import { signToken } from '../keys/sign.ts'
import type { Tenancy } from '../keys/tenancy.ts'
import type { AuditParts } from '../serve/audit.ts'
import { isSessionFault, type SessionFault, type Sessions } from '../sessions/sessions.ts'
import type { ExchangeConfig } from './config.ts'
import { JWT_TOKEN_TYPE } from './request.ts'

export const EXCHANGE_PATH = '/v1/exchange'

/** Dependencies of exchange and delegation. */
export interface IssuingParts extends AuditParts {
  readonly settings: IdentitySettings
  readonly sessions: Sessions
  readonly tenancy: Tenancy
  readonly proofs: ProofVerifier
  readonly records: BindRecords
  readonly config: ExchangeConfig
  readonly clock: Clock
  readonly ids: Ids
}

/** docs/spec/broker-api.md, `POST /v1/exchange`, response 200. */
export interface ExchangeResponse {
  readonly access_token: string
  readonly issued_token_type: typeof JWT_TOKEN_TYPE
  /** `Bearer` as documented, for a bound token too (RFC 9449 would say `DPoP`). */
  readonly token_type: 'Bearer'
  readonly expires_in: number
  readonly scope: string
}

export function answer(accessToken: string, expiresIn: number, scopes: readonly string[]): ExchangeResponse {
  return {
    access_token: accessToken,
    issued_token_type: JWT_TOKEN_TYPE,
    token_type: 'Bearer',
    expires_in: expiresIn,
    scope: scopes.join(' '),
  }
}

/** Returns a verified session token of the request body; `name` is for the refusal. Synchronous when its key is known. */
export function sessionOf(
  { sessions }: IssuingParts,
  token: string,
  name: string,
): SessionClaims | Promise<SessionClaims> {
  return whenReady(sessions.verify(token), accepted, name)
}

function accepted(claims: SessionClaims | SessionFault, name: string): SessionClaims {
  if (isSessionFault(claims)) throw refusalOf(claims, name)
  return claims
}

export function refusalOf({ reason, message }: SessionFault, name: string): OAuthError {
  if (reason === 'unavailable') return new OAuthError(503, 'temporarily_unavailable', message)
  return new OAuthError(400, 'invalid_grant', `${name}: ${message}`)
}

/** Requires a proof from the holder of a bound token, and uses it up. An unbound token needs none. */
export async function proveHolder(
  { settings, proofs }: IssuingParts,
  request: IncomingMessage,
  held: {
    readonly token: string
    readonly claims: SessionClaims
    readonly boundTo: string | null
    readonly name: string
  },
): Promise<void> {
  if (held.boundTo === null) return
  const proof = proofs.check({
    headers: request.headersDistinct.dpop ?? [],
    method: 'POST',
    url: publicUrl(settings.publicUrl, request) + EXCHANGE_PATH,
    accessToken: held.token,
    ath: 'optional',
  })
  if (proof.kind === 'proofFault') throw badProof(`${held.name} is bound to a key: ${proof.message}`)
  if (proof.jkt !== held.boundTo) throw badProof(`${held.name} is bound to another key than that of the proof`)
  const fault = await proofs.use(proof, agentOf(held.claims))
  if (fault !== null) throw badProof(fault.message)
}

function badProof(description: string): OAuthError {
  return new OAuthError(400, 'invalid_dpop_proof', description)
}

/** Returns the remaining seconds of a token; it may have expired during the proof. */
export function secondsLeft({ expiresAt }: Pick<SessionClaims, 'expiresAt'>, now: number, name: string): number {
  if (expiresAt <= now) throw new OAuthError(400, 'invalid_grant', `${name}: token has expired`)
  return expiresAt - now
}

/** Thumbprint of the key that a session token is bound to; null when it is not. */
export function boundTo({ records }: IssuingParts, claims: SessionClaims): string | null | Promise<string | null> {
  return boundKey(claims, records)
}

/** Signs with the key of the namespace, or refuses: a tenant without its key gets no token of another. */
export function signFor({ tenancy }: IssuingParts, namespace: string, claims: object): string | Promise<string> {
  const signer = tenancy.signerFor(namespace)
  if (signer === null) throw unsigned('the signing key of the tenant is not available')
  return signToken(signer, { claims, namespace, refuse: unsigned })
}

function unsigned(message: string): OAuthError {
  return new OAuthError(503, 'temporarily_unavailable', message)
}

/** Claims that a derived token takes over from the session that it is for. */
export function keptClaims({ members }: SessionClaims): Readonly<Record<string, unknown>> {
  return {
    sub: members.sub,
    plat_ns: members.plat_ns,
    plat_agent: members.plat_agent,
    plat_session: members.plat_session,
    plat_tier: members.plat_tier,
    plat_parent_session: members.plat_parent_session,
    plat_fork_root: members.plat_fork_root,
    plat_lineage: members.plat_lineage,
    plat_substrate: members.plat_substrate,
  }
}

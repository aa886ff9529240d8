import { type Clock, type Ids, rfc3339, sessionSpiffeId } from '@plat/core'
import type { LocalSigner } from '@plat/keys'
import type { Log } from '@plat/process'
import { MAX_TOKEN_CHARS, signJws } from '@plat/tokens'
import type { IdentitySettings } from '../flags.ts'
import { type Endpoint, Refusal } from '../serve/endpoint.ts'
import { decodeMintRequest, type MintRequest } from './request.ts'

export interface MintParts {
  readonly settings: IdentitySettings
  signer(): LocalSigner
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
}

/** A minted token and what is said about it (document 1, `POST /v1/token`, response 200). */
interface Minted {
  readonly token: string
  readonly expiresAt: string
  readonly spiffeId: string
  readonly jti: string
  readonly kid: string
  readonly tokenType: 'Bearer' | 'DPoP'
}

/** `POST /v1/token`: decode, name, time, sign, record. */
export function mintEndpoint(parts: MintParts): Endpoint {
  return {
    path: '/v1/token',
    handle(bytes) {
      try {
        const request = decodeMintRequest(bytes)
        const minted = mint(parts, request)
        recordIssued(parts.log, request, minted)
        return minted
      } catch (error) {
        if (error instanceof Refusal) {
          parts.log.warn({ event: 'mint', outcome: 'refused', status: error.status, reason: error.message }, 'refused')
        }
        throw error
      }
    },
  }
}

function mint({ settings, signer: currentSigner, clock, ids }: MintParts, request: MintRequest): Minted {
  const spiffeId = nameOf(settings.trustDomain, request)
  const issuedAt = Math.floor(clock.now() / 1000)
  const expiresAt = issuedAt + lifetimeSeconds(settings, request.ttlSeconds)
  const jti = ids.uuid()
  const signer = currentSigner()
  const token = signJws(
    signer,
    {},
    {
      iss: settings.issuer,
      sub: spiffeId,
      aud: request.audience ?? settings.audience,
      iat: issuedAt,
      nbf: issuedAt,
      exp: expiresAt,
      jti,
      ...optionalClaims(request),
    },
  )
  if (token.length > MAX_TOKEN_CHARS) throw new Refusal(400, `the token would exceed ${MAX_TOKEN_CHARS} characters`)
  return {
    token,
    expiresAt: rfc3339(expiresAt * 1000),
    spiffeId,
    jti,
    kid: signer.kid,
    tokenType: request.dpopJkt === null ? 'Bearer' : 'DPoP',
  }
}

function nameOf(trustDomain: string, { namespace, agent, session }: MintRequest): string {
  try {
    return sessionSpiffeId({ trustDomain, namespace, agent, session })
  } catch {
    throw new Refusal(400, 'invalid session: namespace, agent and session are too long for a SPIFFE ID')
  }
}

/** 0 means the default; nothing outlives the cap. */
function lifetimeSeconds({ defaultTtlMs, maxTtlMs }: IdentitySettings, asked: number): number {
  const wanted = asked === 0 ? defaultTtlMs / 1000 : asked
  return Math.floor(Math.min(wanted, maxTtlMs / 1000))
}

/** Claims from what was said; what was not said is absent (JSON leaves `undefined` out). */
function optionalClaims(request: MintRequest): object {
  return {
    act: request.user === null ? undefined : { sub: `user:${request.user}` },
    scope: request.scopes.length === 0 ? undefined : request.scopes.join(' '),
    plat_ns: request.namespace,
    plat_agent: request.agent,
    plat_session: request.session,
    plat_tier: request.tier ?? undefined,
    plat_groups: request.groups.length === 0 ? undefined : request.groups.join(' '),
    plat_principal_verified: request.principalVerified ?? undefined,
    plat_parent_session: request.parentSession ?? undefined,
    plat_fork_root: request.forkRoot ?? undefined,
    plat_inherited_taints: request.inheritedTaints.length === 0 ? undefined : request.inheritedTaints.join(' '),
    cnf: request.dpopJkt === null ? undefined : { jkt: request.dpopJkt },
  }
}

/** Issuance is audited: one line per token, never the token itself. */
function recordIssued(log: Log, { user, scopes }: MintRequest, { spiffeId, jti, expiresAt }: Minted): void {
  log.info({ event: 'mint', outcome: 'issued', jti, sub: spiffeId, user, scope: scopes.join(' '), expiresAt }, 'issued')
}

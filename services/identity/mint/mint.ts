import { type Clock, type Ids, isPromise, rfc3339, sessionSpiffeId, whenReady } from '@plat/core'
import { type Endpoint, RefusalError } from '@plat/http/endpoints'
import { MAX_TOKEN_CHARS } from '@plat/tokens'
import type { IdentitySettings } from '../flags.ts'
import { signToken } from '../keys/sign.ts'
import type { Tenancy } from '../keys/tenancy.ts'
import type { Substrate } from '../proof/check.ts'
import type { Proofs } from '../proof/proofs.ts'
import { clientCertificate } from '../proof/request.ts'
import { type AuditParts, recordIssued, recordRefused } from '../serve/audit.ts'
import { decodeMintRequest, type MintRequest } from './request.ts'

export interface MintParts extends AuditParts {
  readonly settings: IdentitySettings
  readonly tenancy: Tenancy
  readonly proofs: Proofs
  readonly clock: Clock
  readonly ids: Ids
}

/** A minted token with its description (docs/spec/broker-api.md, `POST /v1/token`, response 200). */
export interface Minted {
  readonly token: string
  readonly expiresAt: string
  readonly spiffeId: string
  readonly jti: string
  readonly kid: string
  readonly tokenType: 'Bearer' | 'DPoP'
  /** Absent without a proof. */
  readonly substrate?: Substrate | undefined
}

/** `POST /v1/token`: decode, prove, name, time, sign, record. */
export function mintEndpoint(parts: MintParts): Endpoint {
  return {
    path: '/v1/token',
    opensWith: 'token',
    takes: 'json',
    errors: 'text',
    isNewWork: true,
    async handle(bytes, http) {
      try {
        const request = decodeMintRequest(bytes)
        const key = { jkt: request.dpopJkt, attested: isAttested(parts.settings, request) }
        const proven = parts.proofs.establish(request.proof, key, () => ({
          namespace: request.namespace,
          agent: request.agent,
          session: request.session,
          clientCertificate: clientCertificate(http),
        }))
        const issued = mint(parts, request, proven === null ? undefined : await proven)
        const minted = isPromise(issued) ? await issued : issued
        const { jti, spiffeId: sub, expiresAt } = minted
        const recorded = recordIssued(parts, 'mint', {
          jti,
          sub,
          user: request.user,
          scope: request.scopes.join(' '),
          expiresAt,
        })
        if (recorded !== undefined) await recorded
        return minted
      } catch (error) {
        if (error instanceof RefusalError) recordRefused(parts, 'mint', error)
        throw error
      }
    },
  }
}

/** Returns whether tokens of this tier go only to the holder of an attested key. */
function isAttested({ attestedTiers }: IdentitySettings, { tier }: MintRequest): boolean {
  return tier !== null && attestedTiers.includes(tier)
}

/**
 * Names, times and signs: the one place where session tokens are made. Returns a promise with a key of a key service. Throws a `RefusalError`, or
 * rejects with it.
 */
export function mint(
  { settings, tenancy, clock, ids }: Pick<MintParts, 'settings' | 'tenancy' | 'clock' | 'ids'>,
  request: MintRequest,
  substrate: Substrate | undefined,
): Minted | Promise<Minted> {
  const spiffeId = nameOf(settings.trustDomain, request)
  const signer = tenancy.signerFor(request.namespace)
  if (signer === null) throw unsigned("the signing key of the namespace's tenant is not available")
  const issuedAt = Math.floor(clock.now() / 1000)
  const expiresAt = issuedAt + lifetimeSeconds(settings, request.ttlSeconds)
  const jti = ids.uuid()
  const claims = {
    iss: settings.issuer,
    sub: spiffeId,
    aud: request.audience ?? settings.audience,
    iat: issuedAt,
    nbf: issuedAt,
    exp: expiresAt,
    jti,
    ...optionalClaims(request),
    plat_lineage: lineageOf(settings.trustDomain, request),
    plat_substrate: substrate,
  }
  const token = signToken(signer, { claims, namespace: request.namespace, refuse: unsigned })
  const description = {
    expiresAt: rfc3339(expiresAt * 1000),
    spiffeId,
    jti,
    kid: signer.kid,
    tokenType: request.dpopJkt === null ? ('Bearer' as const) : ('DPoP' as const),
    substrate,
  }
  return whenReady(token, described, description)
}

function described(token: string, description: Omit<Minted, 'token'>): Minted {
  if (token.length > MAX_TOKEN_CHARS)
    throw new RefusalError(400, `the token would exceed ${MAX_TOKEN_CHARS} characters`)
  return { token, ...description }
}

function unsigned(message: string): RefusalError {
  return new RefusalError(503, message)
}

/** The SPIFFE ID of a session. Throws a `RefusalError` when it would be too long. */
export function nameOf(
  trustDomain: string,
  { namespace, agent, session }: Pick<MintRequest, 'namespace' | 'agent' | 'session'>,
): string {
  try {
    return sessionSpiffeId({ trustDomain, namespace, agent, session })
  } catch {
    throw new RefusalError(400, 'invalid session: namespace, agent and session are too long for a SPIFFE ID')
  }
}

/** SPIFFE IDs of the sessions that this one was forked from. Throws a `RefusalError` when one would be too long. */
function lineageOf(trustDomain: string, { namespace, forkedFrom }: MintRequest): readonly string[] | undefined {
  if (forkedFrom.length === 0) return undefined
  return forkedFrom.map((name) => {
    const [agent = '', session = ''] = name.split('/')
    return nameOf(trustDomain, { namespace, agent, session })
  })
}

/** 0 means the default; nothing outlives the cap. */
function lifetimeSeconds({ defaultTtlMs, maxTtlMs }: IdentitySettings, requested: number): number {
  const wanted = requested === 0 ? defaultTtlMs / 1000 : requested
  return Math.floor(Math.min(wanted, maxTtlMs / 1000))
}

/** Optional claims; absent members stay absent (JSON omits `undefined`). */
function optionalClaims(request: MintRequest): object {
  return {
    act: request.user === null ? undefined : { sub: ['user', request.user].join(':') },
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

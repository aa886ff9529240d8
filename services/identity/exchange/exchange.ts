import type { IncomingMessage } from 'node:http'
import { rfc3339, whenReady } from '@plat/core'
import { OAuthError } from '@plat/http/endpoints'
import type { SessionClaims } from '@plat/tokens'
import { type Asker, recordIssued } from '../serve/audit.ts'
import type { Audience } from './config.ts'
import {
  answer,
  boundTo,
  type ExchangeResponse,
  type IssuingParts,
  keptClaims,
  proveHolder,
  secondsLeft,
  sessionOf,
  signFor,
} from './parts.ts'
import type { Credential, CredentialProvider, ProviderFailure } from './provider.ts'
import type { ExchangeRequest } from './request.ts'

/** Inputs of an exchange once its rules allow it. */
interface Granted {
  readonly subject: SessionClaims
  readonly audienceName: string
  readonly audience: Audience
  readonly scopes: readonly string[]
  /** Thumbprint of the key that the subject is bound to. */
  readonly boundTo: string | null
  /** Unix seconds. */
  readonly issuedAt: number
  readonly lifetimeSeconds: number
  readonly jti: string
}

/** An exchange without actor (docs/spec/broker-api.md, "Exchange rules"): grant, target, scope, proof, issue. */
export async function exchange(
  parts: IssuingParts,
  requested: ExchangeRequest,
  request: IncomingMessage,
  who: Asker,
): Promise<ExchangeResponse> {
  const subject = await sessionOf(parts, requested.subjectToken, 'subject_token')
  who.sub = subject.subject
  who.jti = subject.jti
  if (subject.parentJti !== null) {
    throw new OAuthError(400, 'invalid_grant', 'subject_token: an exchanged token cannot be exchanged again')
  }
  const audienceName = requested.audience ?? ''
  const audience = allowedAudience(parts, audienceName, subject)
  const scopes = grantedScopes(requested, audience, subject)
  const holder = await boundTo(parts, subject)
  if (audience.provider !== null) {
    await proveHolder(parts, request, {
      token: requested.subjectToken,
      claims: subject,
      boundTo: holder,
      name: 'subject_token',
    })
  }
  const issuedAt = Math.floor(parts.clock.now() / 1000)
  const granted: Granted = {
    subject,
    audienceName,
    audience,
    scopes,
    boundTo: holder,
    issuedAt,
    lifetimeSeconds: lifetime(requested, audience, secondsLeft(subject, issuedAt, 'subject_token')),
    jti: parts.ids.uuid(),
  }
  return audience.provider === null ? sessionToken(parts, granted) : credential(parts, granted, audience.provider)
}

/** Rule 2. One error for both reasons: a session that may not request the audience learns no names. */
function allowedAudience({ config }: IssuingParts, name: string, subject: SessionClaims): Audience {
  const audience = config.audience(name)
  if (audience?.allowedNamespaces.has(subject.namespace) === true) return audience
  throw new OAuthError(400, 'invalid_target', 'the audience is not in the allow-list, or not for this namespace')
}

/** Rule 3. */
function grantedScopes({ scopes }: ExchangeRequest, audience: Audience, subject: SessionClaims): readonly string[] {
  const wanted = scopes === null ? null : new Set(scopes)
  const granted = subject.scopes.filter((scope) => wanted?.has(scope) !== false && audience.allowedScopes.has(scope))
  if (granted.length === 1) return granted
  if (granted.length > 1) return [...new Set(granted)]
  throw new OAuthError(400, 'invalid_scope', 'no requested scope is both allowed for the audience and granted')
}

/** Rule 4. `left`: what the subject still has to live, in seconds. */
function lifetime({ ttlSeconds }: ExchangeRequest, { maxTTLSeconds }: Audience, left: number): number {
  return Math.min(ttlSeconds ?? maxTTLSeconds, maxTTLSeconds, left)
}

function sessionToken(parts: IssuingParts, granted: Granted): ExchangeResponse | Promise<ExchangeResponse> {
  const { subject, audienceName, scopes, boundTo: jkt, issuedAt, lifetimeSeconds, jti } = granted
  const { members } = subject
  const token = signFor(parts, subject.namespace, {
    iss: parts.settings.issuer,
    ...keptClaims(subject),
    aud: audienceName,
    iat: issuedAt,
    nbf: issuedAt,
    exp: issuedAt + lifetimeSeconds,
    jti,
    act: members.act,
    scope: scopes.join(' '),
    plat_groups: members.plat_groups,
    plat_principal_verified: members.plat_principal_verified,
    plat_inherited_taints: members.plat_inherited_taints,
    plat_parent_jti: subject.jti,
    plat_delegator_jti: members.plat_delegator_jti,
    plat_delegation_jtis: members.plat_delegation_jtis,
    cnf: jkt === null ? undefined : { jkt },
  })
  return whenReady(token, issued, parts, granted)
}

function issued(token: string, parts: IssuingParts, granted: Granted): ExchangeResponse | Promise<ExchangeResponse> {
  const { lifetimeSeconds, scopes } = granted
  const response = answer(token, lifetimeSeconds, scopes)
  const recorded = record(parts, granted, lifetimeSeconds)
  return recorded === undefined ? response : recorded.then(() => response)
}

/** Rule 5. The failure of the provider goes to the broker's log only, as a reason. */
async function credential(
  parts: IssuingParts,
  granted: Granted,
  provider: CredentialProvider,
): Promise<ExchangeResponse> {
  const result = await issuedBy(provider, granted)
  if (result.kind === 'failed') {
    parts.log.error({ provider: provider.name, audience: granted.audienceName, reason: result.reason }, 'no credential')
    throw new OAuthError(502, 'server_error', 'the credential provider of the audience failed')
  }
  await record(parts, granted, result.expiresInSeconds)
  return answer(result.accessToken, result.expiresInSeconds, granted.scopes)
}

async function issuedBy(provider: CredentialProvider, granted: Granted): Promise<Credential | ProviderFailure> {
  try {
    return await provider.issue(granted)
  } catch (error) {
    if (error instanceof OAuthError) throw error
    return { kind: 'failed', reason: `it threw ${error instanceof Error ? error.name : 'no error'}` }
  }
}

function record(parts: IssuingParts, granted: Granted, expiresIn: number): undefined | Promise<void> {
  const { subject, audienceName, audience, scopes, issuedAt, jti } = granted
  return recordIssued(parts, 'exchange', {
    jti,
    sub: subject.subject,
    user: subject.user,
    scope: scopes.join(' '),
    expiresAt: rfc3339((issuedAt + expiresIn) * 1000),
    parent: subject.jti,
    chain: subject.actors,
    audience: audienceName,
    ...(audience.provider === null ? {} : { provider: audience.provider.name }),
  })
}

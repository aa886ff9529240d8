import { hash } from 'node:crypto'
import { base32 } from '@plat/core'
import {
  boundKeyClaim,
  claimAt,
  InvalidClaimError,
  isText,
  type Jws,
  type Members,
  optionalClaim,
  plainClaim,
  readingClaims,
  type TimedClaims,
  type TokenFault,
  textClaim,
  textClaimAt,
  timedClaims,
  userClaim,
} from '@plat/tokens'
import type { TrustedIssuerConfig } from '../config.ts'

/** Maximum number of groups in a token. Truncation could drop a group that a rule denies. */
const MAX_GROUPS = 512
/** Length of an external caller's session name after `ext-`. */
const SESSION_CHARS = 26

/** Claims of an access token of a trusted issuer (RFC 9068, docs/spec/gateway.md `trustedIssuers`). */
export interface ExternalClaims extends TimedClaims {
  /** `jti`, or a name derived from the signed content, so that a revocation can name the token. */
  readonly jti: string
  readonly agent: string
  /** `ext-` and 26 characters of base32: one per login (`sid`), or per subject and client if tokens name no login. */
  readonly session: string
  readonly user: string
  readonly groups: readonly string[]
  /** Without the issuer's prefix. Scopes without the prefix are left out. */
  readonly scopes: readonly string[]
  /** Thumbprint of the DPoP key that the token is bound to. */
  readonly jkt: string | null
}

/** Claims of a token that names a person. */
export interface PersonClaims extends TimedClaims {
  /** `sub`; null: absent. */
  readonly subject: string | null
  /** All names of the person in the token. */
  readonly names: readonly string[]
  readonly user: string
  readonly groups: readonly string[]
  /** `acr`, `amr` and `auth_time` (OpenID Connect Core, section 2). */
  readonly auth: { readonly acr: string | null; readonly amr: readonly string[]; readonly at: number | null }
}

/** Reads the claims of a verified token that names a person (docs/spec/gateway.md, `adminAuth.oidc`). */
export function decodePerson(
  { payload }: Jws,
  { usernameClaim, groupsClaim }: Pick<TrustedIssuerConfig, 'usernameClaim' | 'groupsClaim'>,
): PersonClaims | TokenFault {
  return readingClaims(() => {
    // Key-bound tokens are refused here: no proof is checked.
    if (payload.cnf !== undefined) throw new InvalidClaimError('the token is bound to a key')
    const user = userClaim(payload, usernameClaim)
    const subject = optionalClaim(payload, 'sub')
    return {
      ...timedClaims(payload),
      subject,
      names: namesOf(payload, user),
      user,
      groups: groupsOf(payload, groupsClaim),
      auth: authenticationIn(payload),
    }
  })
}

/** Returns how and when the person of a token logged in. A claim of another type counts as absent, so that it satisfies nothing. */
export function authenticationIn({ acr, amr, auth_time: at }: Members): PersonClaims['auth'] {
  return {
    acr: typeof acr === 'string' ? acr : null,
    amr: Array.isArray(amr) ? amr.filter((method) => typeof method === 'string') : [],
    at: typeof at === 'number' && Number.isFinite(at) ? at : null,
  }
}

/** Names by which a session may know the person of a token. */
export function namesOf(payload: Members, user: string): readonly string[] {
  const { preferred_username: preferred, email, upn, sub } = payload
  return [...new Set([user, preferred, email, upn, sub].filter(isText))]
}

/** Reads the claims of a verified token by the configuration of its issuer. */
export function decodeExternal({ payload, input }: Jws, config: TrustedIssuerConfig): ExternalClaims | TokenFault {
  return readingClaims(() => {
    const timed = timedClaims(payload)
    const { issuer } = timed
    const subject = textClaim(payload, 'sub')
    const jti = optionalClaim(payload, 'jti') ?? `sha256-${hash('sha256', input, 'base64url')}`
    return {
      ...timed,
      jti,
      agent: agentOf(payload, config),
      session: sessionOf(issuer, subject, payload),
      user: userClaim(payload, config.usernameClaim),
      groups: groupsOf(payload, config.groupsClaim),
      scopes: scopesOf(payload, config.scopePrefix),
      jkt: boundKeyClaim(payload.cnf),
    }
  })
}

/**
 * Stable across token refreshes: otherwise taints, budgets and rates of the session would restart. A JSON array, so that parts cannot
 * run into each other.
 */
function sessionOf(issuer: string, subject: string, payload: Members): string {
  const login = optionalClaim(payload, 'sid')
  const parts = login === null ? [issuer, subject, null, clientOf(payload)] : [issuer, subject, login]
  const digest = hash('sha256', JSON.stringify(parts), 'buffer')
  return `ext-${base32(digest).slice(0, SESSION_CHARS)}`
}

/** Claims that name the client, in order of precedence: RFC 9068, OpenID Connect, Entra ID (v1), Okta. */
const CLIENT_CLAIMS = ['client_id', 'azp', 'appid', 'cid'] as const

/** Returns an empty text if the token names no client: all clients of the subject then share a session. */
function clientOf(payload: Members): string {
  for (const name of CLIENT_CLAIMS) {
    const client = optionalClaim(payload, name)
    if (client !== null) return client
  }
  return ''
}

function agentOf(payload: Members, { agent, agentClaim }: TrustedIssuerConfig): string {
  if (agentClaim === '') return agent
  const label = dnsLabel(plainClaim(textClaimAt(payload, agentClaim), agentClaim))
  if (label === '') throw new InvalidClaimError(`claim "${agentClaim}" gives no agent name`)
  return label
}

/** Maximum length of a DNS label. */
const LABEL_CHARS = 63

/** Returns lower-case letters, digits and single inner dashes: `My Agent/2` becomes `my-agent-2`. */
export function dnsLabel(text: string): string {
  const dashed = text.toLowerCase().replace(/[^a-z0-9]+/g, '-')
  return dashed.replace(/^-/, '').slice(0, LABEL_CHARS).replace(/-$/, '')
}

function groupsOf(payload: Members, groupsClaim: string): readonly string[] {
  const value = claimAt(payload, groupsClaim)
  if (value === undefined) return []
  const groups = typeof value === 'string' ? [value] : value
  if (!Array.isArray(groups) || groups.length > MAX_GROUPS || !groups.every(isText)) {
    throw new InvalidClaimError(`claim "${groupsClaim}" is not a list of at most ${MAX_GROUPS} groups`)
  }
  return groups.map((group) => plainClaim(group, groupsClaim))
}

/** `scope` of RFC 9068, or `scp` of some providers: separated by spaces, or a list. */
function scopesOf(payload: Members, prefix: string): readonly string[] {
  const value = payload.scope ?? payload.scp ?? []
  const scopes = typeof value === 'string' ? value.split(' ') : value
  if (!Array.isArray(scopes) || !scopes.every((scope) => typeof scope === 'string')) {
    throw new InvalidClaimError('the scopes are not a string or list of strings')
  }
  return scopes
    .filter((scope) => scope.startsWith(prefix) && scope.length > prefix.length)
    .map((scope) => scope.slice(prefix.length))
}

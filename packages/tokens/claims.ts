import { decodeBase64url, isTrustDomain, parseSessionSpiffeId } from '@plat/core'
import { fault, type TokenFault } from './fault.ts'
import { isObject } from './jws.ts'

/** Groups that a token carries at most (document 1, claim `plat_groups`). */
export const MAX_GROUPS = 32

/** Levels of the `act` chain that a verifier walks; `-max-delegation-depth` is far below. */
const MAX_ACT_DEPTH = 32

/** Audiences that a token names at most. */
const MAX_AUDIENCES = 16

const PRINCIPAL_VERIFIED = ['requester', 'trustedCreator', 'idToken'] as const

/** How the user was bound to the session (document 1, claim `plat_principal_verified`). */
export type PrincipalVerified = (typeof PRINCIPAL_VERIFIED)[number]

export function isPrincipalVerified(value: unknown): value is PrincipalVerified {
  return PRINCIPAL_VERIFIED.some((word) => word === value)
}

/** The claims of a session token (document 1, "Session token"), decoded. Times are Unix seconds. */
export interface SessionClaims {
  readonly issuer: string
  /** `spiffe://<trust domain>/ns/<namespace>/agent/<agent>/session/<session>`; agrees with the `plat_*` claims. */
  readonly subject: string
  readonly trustDomain: string
  readonly audiences: readonly string[]
  readonly issuedAt: number
  readonly notBefore: number | null
  readonly expiresAt: number
  readonly jti: string
  readonly namespace: string
  readonly agent: string
  readonly session: string
  /** Innermost `act.sub` without `user:`. The agent stands in `sub`, the user in `act`: the reverse of RFC 8693. */
  readonly user: string | null
  /** SPIFFE IDs of the delegating agents, nearest first. */
  readonly actors: readonly string[]
  readonly scopes: readonly string[]
  readonly tier: string
  readonly groups: readonly string[]
  readonly principalVerified: PrincipalVerified | null
  readonly parentJti: string | null
  readonly delegatorJti: string | null
  /** Every `jti` of a delegation chain: revoking any of them revokes all below it. */
  readonly delegationJtis: readonly string[]
  readonly parentSession: string | null
  readonly forkRoot: string | null
  readonly inheritedTaints: readonly string[]
  /** Thumbprint of the DPoP key that the token is bound to (RFC 7800 `cnf.jkt`). */
  readonly jkt: string | null
  /** RFC 7638 thumbprint of the key that verified the token, whatever `kid` its header says; empty where no verifier did. */
  readonly keyThumbprint: string
  /** The claims as they stand in the token. */
  readonly members: Readonly<Record<string, unknown>>
}

type Members = Readonly<Record<string, unknown>>

/** Thrown inside this file alone, where it saves a test after every member; `decodeClaims` answers it as a fault. */
class BadClaim extends Error {
  readonly reason: 'malformed' | 'binding'

  constructor(message: string, reason: 'malformed' | 'binding' = 'malformed') {
    super(message)
    this.reason = reason
  }
}

/** Decodes the payload of a session token that this key verified. Says nothing about time, issuer and audience: the verifier asks those. */
export function decodeClaims(members: Members, keyThumbprint = ''): SessionClaims | TokenFault {
  try {
    return readClaims(members, keyThumbprint)
  } catch (error) {
    if (error instanceof BadClaim) return fault(error.reason, error.message)
    throw error
  }
}

function readClaims(members: Members, keyThumbprint: string): SessionClaims {
  const subject = text(members, 'sub')
  const name = parseSessionSpiffeId(subject)
  if (name === null || !isTrustDomain(name.trustDomain)) throw new BadClaim('claim "sub" is no session', 'binding')
  const { namespace, agent, session, trustDomain } = name
  if (members.plat_ns !== namespace || members.plat_agent !== agent || members.plat_session !== session) {
    throw new BadClaim('claim "sub" does not match the plat_* claims', 'binding')
  }
  const verified = members.plat_principal_verified ?? null
  if (verified !== null && !isPrincipalVerified(verified)) throw new BadClaim('claim "plat_principal_verified" is bad')
  const groups = words(members, 'plat_groups')
  if (groups.length > MAX_GROUPS) throw new BadClaim(`claim "plat_groups" has more than ${MAX_GROUPS} entries`)
  return {
    issuer: text(members, 'iss'),
    subject,
    trustDomain,
    audiences: audiences(members.aud),
    issuedAt: seconds(members, 'iat'),
    notBefore: members.nbf === undefined ? null : seconds(members, 'nbf'),
    expiresAt: seconds(members, 'exp'),
    jti: text(members, 'jti'),
    namespace,
    agent,
    session,
    ...actChain(members.act),
    scopes: words(members, 'scope'),
    tier: optional(members, 'plat_tier') ?? '',
    groups,
    principalVerified: verified,
    parentJti: optional(members, 'plat_parent_jti'),
    delegatorJti: optional(members, 'plat_delegator_jti'),
    delegationJtis: textList(members, 'plat_delegation_jtis'),
    parentSession: optional(members, 'plat_parent_session'),
    forkRoot: optional(members, 'plat_fork_root'),
    inheritedTaints: words(members, 'plat_inherited_taints'),
    jkt: boundKey(members.cnf),
    keyThumbprint,
    members,
  }
}

function text(members: Members, name: string): string {
  const value = members[name]
  if (typeof value !== 'string' || value === '' || !value.isWellFormed()) {
    throw new BadClaim(`claim "${name}" is missing or no string`)
  }
  return value
}

function optional(members: Members, name: string): string | null {
  return members[name] === undefined ? null : text(members, name)
}

/** Space-separated entries; an absent or empty claim is the empty list. */
function words(members: Members, name: string): readonly string[] {
  const value = members[name]
  if (value === undefined || value === '') return []
  const entries = text(members, name).split(' ')
  if (entries.includes('')) throw new BadClaim(`claim "${name}" is not separated by single spaces`)
  return entries
}

function textList(members: Members, name: string): readonly string[] {
  const value = members[name]
  if (value === undefined) return []
  if (!Array.isArray(value) || value.length > MAX_ACT_DEPTH || !value.every(isText)) {
    throw new BadClaim(`claim "${name}" is no list of strings`)
  }
  return value
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.isWellFormed()
}

/** Integers only: `1e400` is infinite, and a fraction is nobody's date. */
function seconds(members: Members, name: string): number {
  const value = members[name]
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) {
    throw new BadClaim(`claim "${name}" is missing or no whole number of seconds`)
  }
  return value
}

function audiences(value: unknown): readonly string[] {
  const list = typeof value === 'string' ? [value] : value
  if (!Array.isArray(list) || list.length === 0 || list.length > MAX_AUDIENCES || !list.every(isText)) {
    throw new BadClaim('claim "aud" is missing or no string or list of strings')
  }
  return list
}

/** Walks `{sub: <agent>, act: {sub: <agent>, act: {sub: 'user:<user>'}}}` from the outside in. */
function actChain(act: unknown): { readonly user: string | null; readonly actors: readonly string[] } {
  const actors: string[] = []
  let level = act
  while (level !== undefined) {
    if (!isObject(level)) throw new BadClaim('claim "act" is no object')
    const sub = text(level, 'sub')
    if (sub.startsWith('user:')) {
      if (level.act !== undefined || sub === 'user:') throw new BadClaim('claim "act" goes on behind the user')
      return { user: sub.slice('user:'.length), actors }
    }
    if (parseSessionSpiffeId(sub) === null) throw new BadClaim('claim "act" names neither a user nor a session')
    if (actors.length === MAX_ACT_DEPTH) throw new BadClaim('claim "act" is too deep')
    actors.push(sub)
    level = level.act
  }
  return { user: null, actors }
}

/** RFC 7800: a confirmation that is not understood must not be passed over. */
function boundKey(cnf: unknown): string | null {
  if (cnf === undefined) return null
  if (!isObject(cnf) || typeof cnf.jkt !== 'string' || Object.keys(cnf).length !== 1 || !isThumbprint(cnf.jkt)) {
    throw new BadClaim('claim "cnf" is not understood', 'binding')
  }
  return cnf.jkt
}

const THUMBPRINT_BYTES = 32

/** A SHA-256 thumbprint in canonical base64url. */
export function isThumbprint(value: string): boolean {
  return decodeBase64url(value)?.length === THUMBPRINT_BYTES
}

import { isObject, isSpiffeSegment, isTrustDomain, parseSessionSpiffeId, type SessionName } from '@plat/core'
import type { TokenFault } from './fault.ts'
import {
  audienceClaim,
  boundKeyClaim,
  InvalidClaimError,
  isText,
  type Members,
  optionalClaim,
  readingClaims,
  secondsClaim,
  textClaim,
  wordsClaim,
} from './members.ts'

/** Groups that a token carries at most (docs/spec/broker-api.md, claim `plat_groups`). */
export const MAX_GROUPS = 32

/** Levels of the `act` chain that a verifier walks; `-max-delegation-depth` is far below. */
const MAX_ACT_DEPTH = 32

/** Sessions in claim `plat_lineage` at most. */
export const MAX_LINEAGE = 32

const PRINCIPAL_VERIFIED = ['requester', 'trustedCreator', 'idToken'] as const

/** How the user was bound to the session (docs/spec/broker-api.md, claim `plat_principal_verified`). */
export type PrincipalVerified = (typeof PRINCIPAL_VERIFIED)[number]

export function isPrincipalVerified(value: unknown): value is PrincipalVerified {
  return PRINCIPAL_VERIFIED.some((word) => word === value)
}

/** The claims of a session token (docs/spec/broker-api.md, "Session token"), decoded. Times are Unix seconds. */
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
  /** Tenant of the verifying key, as in the key document; empty without tenants. */
  readonly tenant: string
  readonly namespace: string
  readonly agent: string
  readonly session: string
  /** Innermost `act.sub` without `user:`. `sub` holds the agent, `act` the user: the reverse of RFC 8693. */
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
  /** Sessions that this one was forked from, and those that its delegators were forked from (claim `plat_lineage`). */
  readonly lineage: readonly SessionName[]
  readonly parentSession: string | null
  readonly forkRoot: string | null
  readonly inheritedTaints: readonly string[]
  /** Thumbprint of the DPoP key that the token is bound to (RFC 7800 `cnf.jkt`). */
  readonly jkt: string | null
  /** RFC 7638 thumbprint of the key that verified the token, whatever `kid` its header says; empty where no verifier did. */
  readonly keyThumbprint: string
  /** The undecoded claims of the token. */
  readonly members: Readonly<Record<string, unknown>>
}

/** Decodes the payload of a session token verified by this key. Does not check time, issuer and audience: the verifier does. */
export function decodeClaims(members: Members, keyThumbprint = '', tenant = ''): SessionClaims | TokenFault {
  return readingClaims(() => readClaims(members, keyThumbprint, tenant))
}

function readClaims(members: Members, keyThumbprint: string, tenant: string): SessionClaims {
  const subject = textClaim(members, 'sub')
  const name = parseSessionSpiffeId(subject)
  if (name === null || !isTrustDomain(name.trustDomain))
    throw new InvalidClaimError('claim "sub" is not a session', 'binding')
  const { namespace, agent, session, trustDomain } = name
  if (members.plat_ns !== namespace || members.plat_agent !== agent || members.plat_session !== session) {
    throw new InvalidClaimError('claim "sub" does not match the plat_* claims', 'binding')
  }
  const verified = members.plat_principal_verified ?? null
  if (verified !== null && !isPrincipalVerified(verified))
    throw new InvalidClaimError('claim "plat_principal_verified" is bad')
  const groups = wordsClaim(members, 'plat_groups')
  if (groups.length > MAX_GROUPS) throw new InvalidClaimError(`claim "plat_groups" has more than ${MAX_GROUPS} entries`)
  const { user, actors } = actChain(members.act)
  return {
    issuer: textClaim(members, 'iss'),
    subject,
    trustDomain,
    audiences: audienceClaim(members.aud),
    issuedAt: secondsClaim(members, 'iat'),
    notBefore: members.nbf === undefined ? null : secondsClaim(members, 'nbf'),
    expiresAt: secondsClaim(members, 'exp'),
    jti: textClaim(members, 'jti'),
    tenant,
    namespace,
    agent,
    session,
    user,
    actors,
    scopes: wordsClaim(members, 'scope'),
    tier: optionalClaim(members, 'plat_tier') ?? '',
    groups,
    principalVerified: verified,
    parentJti: optionalClaim(members, 'plat_parent_jti'),
    delegatorJti: optionalClaim(members, 'plat_delegator_jti'),
    delegationJtis: textList(members, 'plat_delegation_jtis', MAX_ACT_DEPTH),
    lineage: sessionList(members, 'plat_lineage'),
    parentSession: optionalClaim(members, 'plat_parent_session'),
    forkRoot: optionalClaim(members, 'plat_fork_root'),
    inheritedTaints: wordsClaim(members, 'plat_inherited_taints'),
    jkt: boundKeyClaim(members.cnf),
    keyThumbprint,
    members,
  }
}

function textList(members: Members, name: string, most: number): readonly string[] {
  const value = members[name]
  if (value === undefined) return []
  if (!Array.isArray(value) || value.length > most || !value.every(isText)) {
    throw new InvalidClaimError(`claim "${name}" is not a list of strings`)
  }
  return value
}

function sessionList(members: Members, name: string): readonly SessionName[] {
  return textList(members, name, MAX_LINEAGE).map((id) => {
    const session = parseSessionSpiffeId(id)
    if (session === null) throw new InvalidClaimError(`claim "${name}" is not a list of sessions`)
    return session
  })
}

/** Returns the agent of a token, whose shares of pools it uses. */
export function agentOf({ namespace, agent }: Pick<SessionClaims, 'namespace' | 'agent'>): string {
  return `${namespace}/${agent}`
}

/** The claims that state where a token comes from. */
export type Descendant = Pick<
  SessionClaims,
  'trustDomain' | 'namespace' | 'agent' | 'actors' | 'lineage' | 'parentSession' | 'forkRoot'
>

/** Sessions whose revocation ends a token, its own excepted. */
export interface Ancestry {
  /** Sessions that delegated to it, nearest first (claim `act`). */
  readonly delegators: readonly SessionName[]
  /** Sessions that it or a delegator was forked from. */
  readonly forkedFrom: readonly SessionName[]
}

/**
 * Returns the sessions that a token descends from, by name: a `jti` names one token, and its session may have refreshed it since. Tokens of brokers
 * without `plat_lineage` name parent and root by session only; these are then of the same agent.
 */
export function ancestryOf(claims: Descendant): Ancestry {
  const { trustDomain, namespace, agent, lineage, parentSession, forkRoot, actors } = claims
  const forkedFrom = [...lineage]
  for (const session of new Set([parentSession, forkRoot])) {
    const isKnown = session === null || lineage.some((one) => one.namespace === namespace && one.session === session)
    if (!isKnown && isSpiffeSegment(session)) forkedFrom.push({ trustDomain, namespace, agent, session })
  }
  return { delegators: actors.map(parseSessionSpiffeId).filter((name) => name !== null), forkedFrom }
}

/** Walks `{sub: <agent>, act: {sub: <agent>, act: {sub: 'user:<user>'}}}` from the outside in. */
function actChain(act: unknown): { readonly user: string | null; readonly actors: readonly string[] } {
  const actors: string[] = []
  let level = act
  while (level !== undefined) {
    if (!isObject(level)) throw new InvalidClaimError('claim "act" is not an object')
    const sub = textClaim(level, 'sub')
    if (sub.startsWith('user:')) {
      if (level.act !== undefined || sub === 'user:')
        throw new InvalidClaimError('claim "act" continues after the user')
      return { user: sub.slice('user:'.length), actors }
    }
    if (parseSessionSpiffeId(sub) === null)
      throw new InvalidClaimError('claim "act" names neither a user nor a session')
    if (actors.length === MAX_ACT_DEPTH) throw new InvalidClaimError('claim "act" is too deep')
    actors.push(sub)
    level = level.act
  }
  return { user: null, actors }
}

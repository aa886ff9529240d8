import type { IncomingMessage } from 'node:http'
import { rfc3339 } from '@plat/core'
import { MAX_TOKEN_CHARS, type SessionClaims } from '@plat/tokens'
import {
  answer,
  boundTo,
  type ExchangeAnswer,
  type IssuingParts,
  keptClaims,
  proveHolder,
  secondsLeft,
  sessionOf,
  signFor,
} from '../exchange/parts.ts'
import type { ExchangeRequest } from '../exchange/request.ts'
import { recordIssued } from '../serve/audit.ts'
import { OAuthRefusal } from '../serve/refusal.ts'
import type { Once } from './once.ts'
import { type Delegator, delegatorOf, names } from './subject.ts'
import type { TransactionVerifier } from './transaction-token.ts'

/** Document 1, "Limits": a delegated token lives at most this long, in seconds. */
const MAX_LIFETIME_SECONDS = 15 * 60

export interface DelegationParts extends IssuingParts {
  /** Null: transaction tokens are not taken. */
  readonly transactions: TransactionVerifier | null
  readonly once: Once
}

export interface DelegationRequest extends ExchangeRequest {
  readonly actorToken: string
}

/** What a delegated token is made of once the rules have let it through. */
interface Delegation {
  readonly actor: SessionClaims
  readonly delegator: Delegator
  readonly scopes: readonly string[]
  /** Thumbprint of the key that the actor is bound to. */
  readonly actorKey: string | null
}

/** Agent-to-agent delegation (document 1, "Delegation rules"): grant, target, scope, proof, issue. */
export async function delegate(
  parts: DelegationParts,
  asked: DelegationRequest,
  request: IncomingMessage,
  who: object,
): Promise<ExchangeAnswer> {
  const actor = await actorOf(parts, asked)
  Object.assign(who, { sub: actor.subject, jti: actor.jti })
  const delegator = await delegatorOf(parts, asked)
  refuseSelf(actor, delegator.claims)
  refuseOtherTenant(parts, actor, delegator.claims)
  refuseDepth(parts, delegator.claims)
  checkTarget(parts, asked, actor, delegator)
  const scopes = grantedScopes(asked, actor, delegator)
  const actorKey = await boundTo(parts, actor)
  await proveHolder(parts, request, { token: asked.actorToken, boundTo: actorKey, name: 'actor_token' })
  const delegation = { actor, delegator, scopes, actorKey }
  const make = () => issue(parts, asked, delegation)
  return delegator.txn === null ? make() : onlyOnce(parts, asked, { ...delegation, txn: delegator.txn }, make)
}

/** Rule 1: the caller's own session token. */
async function actorOf(parts: DelegationParts, { actorToken }: DelegationRequest): Promise<SessionClaims> {
  const actor = await sessionOf(parts, actorToken, 'actor_token')
  if (actor.parentJti === null && actor.delegatorJti === null) return actor
  throw badGrant('actor_token: an exchanged or delegated token is not the own token of an agent')
}

/** Another session of the same agent is itself too. */
function refuseSelf(actor: SessionClaims, delegator: SessionClaims): void {
  if (actor.namespace !== delegator.namespace || actor.agent !== delegator.agent) return
  throw badGrant('an agent cannot delegate to itself')
}

function refuseOtherTenant({ tenancy }: DelegationParts, actor: SessionClaims, delegator: SessionClaims): void {
  if (tenancy.tenantOf(actor.namespace) === tenancy.tenantOf(delegator.namespace)) return
  throw badGrant('a delegation cannot cross tenants')
}

/** Depth 5 means five delegations: the delegator's chain and one more. */
function refuseDepth({ settings }: DelegationParts, delegator: SessionClaims): void {
  if (delegator.actors.length < settings.maxDelegationDepth) return
  throw badGrant(`the delegation chain would be longer than ${settings.maxDelegationDepth}`)
}

/** Rule 3; and a transaction token is for the one agent that was called. */
function checkTarget(
  { settings }: DelegationParts,
  { audience }: DelegationRequest,
  actor: SessionClaims,
  { claims, scopes, txn }: Delegator,
): void {
  if (audience !== null && audience !== settings.audience) {
    throw badTarget(`audience must be ${settings.audience} in a delegation`)
  }
  if (txn === null) return
  const [scope, more] = scopes
  if (scope !== undefined && more === undefined && names(scope, claims, actor)) return
  throw badTarget('the transaction token is of a call to another agent')
}

/** Rule 2, then the actor's own scopes, narrowed when the request asks for it. */
function grantedScopes({ scopes }: DelegationRequest, actor: SessionClaims, delegator: Delegator): readonly string[] {
  if (!delegator.scopes.some((scope) => names(scope, delegator.claims, actor))) {
    throw badScope(`the subject does not grant agents:${actor.agent} or agents:${actor.namespace}/${actor.agent}`)
  }
  if (scopes === null) return actor.scopes
  const wanted = new Set(scopes)
  const granted = actor.scopes.filter((scope) => wanted.has(scope))
  if (granted.length === 0) throw badScope('the actor was granted none of the requested scopes')
  return granted
}

async function onlyOnce(
  { once }: DelegationParts,
  request: DelegationRequest,
  { actor, delegator, actorKey, txn }: Delegation & { readonly txn: string },
  make: () => ExchangeAnswer,
): Promise<ExchangeAnswer> {
  const { expiresAt } = delegator.claims
  const verdict = await once.run({ txn, actor: actor.subject, jkt: actorKey, expiresAt, request }, make)
  if (verdict === 'used') throw badGrant('subject_token: the transaction token was used before')
  if (verdict === 'full') {
    throw new OAuthRefusal(503, 'temporarily_unavailable', 'too many transactions at once: try again later')
  }
  return verdict
}

/** Rule 4. */
function issue(parts: DelegationParts, asked: DelegationRequest, delegation: Delegation): ExchangeAnswer {
  const { actor, delegator, scopes } = delegation
  const issuedAt = Math.floor(parts.clock.now() / 1000)
  const lifetime = Math.min(
    MAX_LIFETIME_SECONDS,
    asked.ttlSeconds ?? MAX_LIFETIME_SECONDS,
    secondsLeft(actor, issuedAt, 'actor_token'),
    secondsLeft(delegator.claims, issuedAt, 'subject_token'),
  )
  const jti = parts.ids.uuid()
  const token = signFor(parts, actor.namespace, {
    iss: parts.settings.issuer,
    aud: parts.settings.audience,
    iat: issuedAt,
    nbf: issuedAt,
    exp: issuedAt + lifetime,
    jti,
    ...delegatedClaims(delegation),
  })
  if (token.length > MAX_TOKEN_CHARS) throw badGrant('the delegated token would be too long')
  recordIssued(parts.log, 'delegation', {
    jti,
    sub: actor.subject,
    user: delegator.claims.user,
    scope: scopes.join(' '),
    expiresAt: rfc3339((issuedAt + lifetime) * 1000),
    parent: delegator.claims.jti,
    chain: [delegator.claims.subject, ...delegator.claims.actors],
  })
  return answer(token, lifetime, scopes)
}

/** Where it runs and what it may are the actor's; for whom is the delegator's. */
function delegatedClaims({ actor, delegator, scopes, actorKey }: Delegation): object {
  const { claims } = delegator
  const taints = new Set([...claims.inheritedTaints, ...actor.inheritedTaints])
  return {
    ...keptClaims(actor),
    act: { sub: claims.subject, act: claims.members.act },
    scope: scopes.length === 0 ? undefined : scopes.join(' '),
    plat_groups: claims.members.plat_groups,
    plat_principal_verified: claims.members.plat_principal_verified,
    plat_inherited_taints: taints.size === 0 ? undefined : [...taints].join(' '),
    plat_delegator_jti: claims.jti,
    // Everything that this token stands on: revoking any of it revokes this one too, the actor's own token included.
    plat_delegation_jtis: [claims.jti, ...claims.delegationJtis, actor.jti],
    cnf: actorKey === null ? undefined : { jkt: actorKey },
  }
}

function badGrant(description: string): OAuthRefusal {
  return new OAuthRefusal(400, 'invalid_grant', description)
}

function badTarget(description: string): OAuthRefusal {
  return new OAuthRefusal(400, 'invalid_target', description)
}

function badScope(description: string): OAuthRefusal {
  return new OAuthRefusal(400, 'invalid_scope', description)
}

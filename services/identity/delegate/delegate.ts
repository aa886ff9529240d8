import type { IncomingMessage } from 'node:http'
import { isPromise, rfc3339, sessionSpiffeId } from '@plat/core'
import { OAuthError } from '@plat/http/endpoints'
import { agentOf, ancestryOf, MAX_LINEAGE, MAX_TOKEN_CHARS, type SessionClaims } from '@plat/tokens'
import {
  answer,
  boundTo,
  type ExchangeResponse,
  keptClaims,
  proveHolder,
  secondsLeft,
  sessionOf,
  signFor,
} from '../exchange/parts.ts'
import type { DelegationRequest } from '../exchange/request.ts'
import { type Asker, type IssuedFacts, recordIssued } from '../serve/audit.ts'
import type { Once, OnceVerdict } from './once.ts'
import { type Delegator, type DelegatorParts, delegatorOf, names } from './subject.ts'

/** docs/spec/broker-api.md, "Limits": a delegated token lives at most this long, in seconds. */
const MAX_LIFETIME_SECONDS = 15 * 60

export interface DelegationParts extends DelegatorParts {
  readonly once: Once
}

/** Inputs of a delegated token once the rules allow it. */
interface Delegation {
  readonly actor: SessionClaims
  readonly delegator: Delegator
  readonly scopes: readonly string[]
  /** Thumbprint of the key that the actor is bound to. */
  readonly actorKey: string | null
}

/** Agent-to-agent delegation (docs/spec/broker-api.md, "Delegation rules"): grant, target, scope, proof, issue. */
export async function delegate(
  parts: DelegationParts,
  requested: DelegationRequest,
  request: IncomingMessage,
  who: Asker,
): Promise<ExchangeResponse> {
  const actor = await actorOf(parts, requested)
  who.sub = actor.subject
  who.jti = actor.jti
  const delegator = await delegatorOf(parts, requested)
  refuseSelf(actor, delegator.claims)
  refuseOtherTenant(parts, actor, delegator.claims)
  refuseDepth(parts, delegator.claims)
  checkTarget(parts, requested, actor, delegator)
  const scopes = grantedScopes(requested, actor, delegator)
  const actorKey = await boundTo(parts, actor)
  await proveHolder(parts, request, {
    token: requested.actorToken,
    claims: actor,
    boundTo: actorKey,
    name: 'actor_token',
  })
  const delegation = { actor, delegator, scopes, actorKey }
  if (delegator.txn !== null) return onlyOnce(parts, requested, { ...delegation, txn: delegator.txn })
  return recorded(parts, await issue(parts, requested, delegation))
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

/** Rule 2, then the actor's own scopes, narrowed if the request says so. */
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

/**
 * The token is created and recorded before the use is claimed, so that a repeated request gets a recorded token. The loser of a race discards its
 * token; its record names a token that was never issued.
 */
async function onlyOnce(
  parts: DelegationParts,
  request: DelegationRequest,
  delegation: Delegation & { readonly txn: string },
): Promise<ExchangeResponse> {
  const { actor, delegator, actorKey: jkt, txn, scopes } = delegation
  const { expiresAt } = delegator.claims
  const use = { txn, actor: actor.subject, agent: agentOf(actor), jkt, expiresAt, request }
  const before = await parts.once.find(use)
  if (before !== null) return repeated(before, scopes)
  const issued = await issue(parts, request, delegation)
  await recorded(parts, issued)
  const verdict = await parts.once.claim(use, `${issued.answer.expires_in} ${issued.answer.access_token}`)
  return verdict.kind === 'first' ? issued.answer : repeated(verdict, scopes)
}

/** The identical request has the same scopes, and its token has less to live by now. */
function repeated(verdict: OnceVerdict, scopes: readonly string[]): ExchangeResponse {
  if (verdict.kind === 'full') {
    throw new OAuthError(503, 'temporarily_unavailable', 'too many transactions at once: try again later')
  }
  if (verdict.kind !== 'repeated') throw badGrant('subject_token: the transaction token was used before')
  const [lifetime = '', token = ''] = verdict.text.split(' ')
  return answer(token, Math.max(0, Number(lifetime) - Math.floor(verdict.agoMs / 1000)), scopes)
}

/** A delegated token, and its record for when it is issued. */
interface IssuedDelegation {
  readonly answer: ExchangeResponse
  readonly facts: IssuedFacts
}

async function recorded(parts: DelegationParts, issued: IssuedDelegation): Promise<ExchangeResponse> {
  await recordIssued(parts, 'delegation', issued.facts)
  return issued.answer
}

/** Rule 4. */
async function issue(
  parts: DelegationParts,
  requested: DelegationRequest,
  delegation: Delegation,
): Promise<IssuedDelegation> {
  const { actor, delegator, scopes } = delegation
  const issuedAt = Math.floor(parts.clock.now() / 1000)
  const lifetime = Math.min(
    MAX_LIFETIME_SECONDS,
    requested.ttlSeconds ?? MAX_LIFETIME_SECONDS,
    secondsLeft(actor, issuedAt, 'actor_token'),
    secondsLeft(delegator.claims, issuedAt, 'subject_token'),
  )
  const jti = parts.ids.uuid()
  const signed = signFor(parts, actor.namespace, {
    iss: parts.settings.issuer,
    aud: parts.settings.audience,
    iat: issuedAt,
    nbf: issuedAt,
    exp: issuedAt + lifetime,
    jti,
    ...delegatedClaims(delegation),
  })
  const token = isPromise(signed) ? await signed : signed
  if (token.length > MAX_TOKEN_CHARS) throw badGrant('the delegated token would be too long')
  const facts = {
    jti,
    sub: actor.subject,
    user: delegator.claims.user,
    scope: scopes.join(' '),
    expiresAt: rfc3339((issuedAt + lifetime) * 1000),
    parent: delegator.claims.jti,
    chain: [delegator.claims.subject, ...delegator.claims.actors],
  }
  return { answer: answer(token, lifetime, scopes), facts }
}

/** Location and permissions are the actor's; the user is the delegator's. */
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
    plat_lineage: lineageOf(actor, claims),
    // Every token that this one depends on, including the actor's: revoking any of them revokes this one.
    plat_delegation_jtis: [claims.jti, ...claims.delegationJtis, actor.jti],
    cnf: actorKey === null ? undefined : { jkt: actorKey },
  }
}

/** Sessions that the actor or the delegator was forked from; the delegators themselves are in `act`. */
function lineageOf(actor: SessionClaims, delegator: SessionClaims): readonly string[] | undefined {
  const forkedFrom = [...ancestryOf(actor).forkedFrom, ...ancestryOf(delegator).forkedFrom]
  const ids = new Set(forkedFrom.map(sessionSpiffeId))
  if (ids.size > MAX_LINEAGE) throw badGrant(`the delegated token would descend from more than ${MAX_LINEAGE} forks`)
  return ids.size === 0 ? undefined : [...ids]
}

function badGrant(description: string): OAuthError {
  return new OAuthError(400, 'invalid_grant', description)
}

function badTarget(description: string): OAuthError {
  return new OAuthError(400, 'invalid_target', description)
}

function badScope(description: string): OAuthError {
  return new OAuthError(400, 'invalid_scope', description)
}

import { OAuthError } from '@plat/http/endpoints'
import type { SessionClaims } from '@plat/tokens'
import { boundTo, type IssuingParts, refusalOf, sessionOf } from '../exchange/parts.ts'
import type { DelegationRequest } from '../exchange/request.ts'
import type { TransactionVerifier } from './transaction-token.ts'

export interface DelegatorParts extends IssuingParts {
  /** Null: transaction tokens are not accepted. */
  readonly transactions: TransactionVerifier | null
}

/** Agent A, on whose behalf the actor is to act: from its session token, or from the call's transaction token. */
export interface Delegator {
  readonly claims: SessionClaims
  /** Granted scopes; must name the actor. */
  readonly scopes: readonly string[]
  /** Id of the transaction, which is good once; null for a session token. */
  readonly txn: string | null
}

/** Returns the subject as a grant: its identity, and whether it may be delegated at all. The target is checked later. */
export async function delegatorOf(parts: DelegatorParts, requested: DelegationRequest): Promise<Delegator> {
  if (requested.subjectKind === 'transaction') return transaction(parts, requested.subjectToken)
  const claims = await sessionOf(parts, requested.subjectToken, 'subject_token')
  if (claims.parentJti !== null) throw badGrant('an exchanged token cannot be delegated')
  if ((await boundTo(parts, claims)) !== null) throw badGrant('a token that is bound to a key cannot be delegated')
  return { claims, scopes: claims.scopes, txn: null }
}

async function transaction({ transactions, sessions }: DelegatorParts, token: string): Promise<Delegator> {
  if (transactions === null) {
    throw new OAuthError(400, 'invalid_request', 'subject_token_type: transaction tokens are not taken here')
  }
  const answer = await transactions.verify(token)
  if ('kind' in answer) throw badGrant(answer.message)
  const revoked = sessions.revoked(answer.caller)
  if (revoked !== null) throw refusalOf(revoked, 'subject_token')
  return { claims: answer.caller, scopes: answer.scopes, txn: answer.txn }
}

function badGrant(message: string): OAuthError {
  return new OAuthError(400, 'invalid_grant', `subject_token: ${message}`)
}

/** `agents:<B>` names an agent of A's own namespace, `agents:<ns>/<B>` one of any. */
export function names(scope: string, delegator: SessionClaims, actor: SessionClaims): boolean {
  if (scope === `agents:${actor.namespace}/${actor.agent}`) return true
  return delegator.namespace === actor.namespace && scope === `agents:${actor.agent}`
}

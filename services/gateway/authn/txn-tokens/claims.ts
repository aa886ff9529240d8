import { parseSessionSpiffeId, sessionSpiffeId } from '@plat/core'
import type { Call } from '../../call/index.ts'

/** The caller by its session token, with members that the facts of a call lack. */
export interface Subject {
  /** SPIFFE ID of the calling session. */
  readonly id: string
  /** `act` of its token: the agents that delegated to it, then the user; undefined without either. */
  readonly act: unknown
}

/** Configuration and time of a token. Times are Unix seconds. */
export interface Terms {
  readonly issuer: string
  readonly audience: string
  readonly workloadID: string
  readonly issuedAt: number
  readonly lifetimeSeconds: number
}

/**
 * The claims of the transaction token of a call to an agent (OAuth Transaction Tokens). `sub` and `act` are the caller's, `scope` names the
 * one agent that is called, and `txn` is the call's own id, so that each token stands for one call and is found in the ledger by it. What
 * the broker hands on in a delegation goes in: groups, how the user was bound, the taints of now, every `jti` whose revocation ends it all.
 * The caller's token itself does not.
 */
export function transactionClaims(
  { id, facts: { identity, target } }: Pick<Call<'identity' | 'target'>, 'id' | 'facts'>,
  { id: sub, act }: Subject,
  taints: readonly string[],
  { issuer, audience, workloadID, issuedAt, lifetimeSeconds }: Terms,
): object {
  const called = target.server.slice(target.server.indexOf('/') + 1)
  const { jti, ancestors, groups, verified } = identity
  const trustDomain = parseSessionSpiffeId(sub)?.trustDomain ?? ''
  const lineage = identity.forkedFrom.map((one) => sessionSpiffeId({ ...one, trustDomain }))
  return {
    iss: issuer,
    aud: audience,
    iat: issuedAt,
    // A token does not outlive the session of its caller.
    exp: Math.min(issuedAt + lifetimeSeconds, Math.floor(identity.expiresAt / 1000)),
    txn: id,
    sub,
    scope: ['agents', called].join(':'),
    req_wl: workloadID,
    act,
    tctx: { jti, target: called, call: id },
    plat_groups: listed(groups),
    plat_principal_verified: verified ?? undefined,
    plat_inherited_taints: listed(taints),
    plat_delegation_jtis: ancestors.length === 0 ? undefined : ancestors,
    plat_lineage: lineage.length === 0 ? undefined : lineage,
  }
}

/** Joins lists as session tokens do; undefined if empty. */
function listed(words: readonly string[]): string | undefined {
  return words.length === 0 ? undefined : words.join(' ')
}

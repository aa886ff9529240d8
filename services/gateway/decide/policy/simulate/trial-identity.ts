import type { Identity } from '../../../call/index.ts'

/** Caller of a call that is judged without a token. */
export interface TrialCaller {
  readonly namespace: string
  readonly agent: string
  readonly tier: string
  readonly scopes: readonly string[]
  readonly user: string | null
  readonly groups: readonly string[]
}

/** The identity of such a caller, whose token never expires. */
export function trialIdentity({ namespace, agent, tier, scopes, user, groups }: TrialCaller): Identity {
  return {
    ...{ tenant: '', trustDomain: '', namespace, agent, session: 'trial', user, groups, tier },
    ...{ verified: null, scopes: new Set(scopes), jti: '', ancestors: [], delegators: [], forkedFrom: [], chain: [] },
    ...{ expiresAt: Number.MAX_SAFE_INTEGER, jkt: null, issuer: '', forkRoot: null, inheritedTaints: [] },
  }
}

import { ancestryOf, type SessionClaims } from '@plat/tokens'
import type { Identity } from '../../call/index.ts'

/** Returns the identity of verified claims. `expiresAt` includes the leeway, so it ends when the verifier would reject the token. */
export function identityOf(claims: SessionClaims, leewaySeconds: number): Identity {
  const { delegators, forkedFrom } = ancestryOf(claims)
  return {
    tenant: claims.tenant,
    trustDomain: claims.trustDomain,
    namespace: claims.namespace,
    agent: claims.agent,
    session: claims.session,
    user: claims.user,
    groups: claims.groups,
    verified: claims.principalVerified,
    tier: claims.tier,
    scopes: new Set(claims.scopes),
    jti: claims.jti,
    ancestors: ancestorsOf(claims),
    delegators,
    forkedFrom,
    chain: delegators.map(({ namespace, agent }) => `${namespace}/${agent}`),
    expiresAt: (claims.expiresAt + leewaySeconds) * 1000,
    jkt: claims.jkt,
    issuer: claims.issuer,
    forkRoot: claims.forkRoot,
    inheritedTaints: claims.inheritedTaints,
  }
}

/** Revoking any token that this one derives from revokes this one (docs/spec/broker-api.md, `plat_parent_jti`, `plat_delegator_jti`). */
function ancestorsOf({ parentJti, delegatorJti, delegationJtis }: SessionClaims): readonly string[] {
  return [...new Set([parentJti, delegatorJti, ...delegationJtis].filter((jti) => jti !== null))]
}

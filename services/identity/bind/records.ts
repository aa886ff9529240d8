import { type PoolObserver, watchedPool } from '@plat/core'
import type { OnceSets, OnceVerdict } from '@plat/state'
import { agentOf, type SessionClaims } from '@plat/tokens'

/** Keys that tokens were bound to. The first bind of a `jti` wins, for the life of the token. */
export interface BindRecords {
  /** Returns the thumbprint of the key that the token is bound to; null when it is unbound. */
  find(jti: string): string | null | Promise<string | null>
  /** Atomic: of several concurrent binds one gets `inserted`. */
  insert(claims: BoundClaims, jkt: string): OnceVerdict | Promise<OnceVerdict>
}

/** Of the token that is bound. */
type BoundClaims = Pick<SessionClaims, 'jti' | 'namespace' | 'agent' | 'expiresAt'>

/** In memory a token can be bound once per replica (docs/spec/broker-api.md, "States"); in a shared backend once. */
export function bindRecords(sets: OnceSets, observer?: PoolObserver): BindRecords {
  const records = sets.set('bind', watchedPool({ name: 'bound_tokens', observer }))
  return {
    find: (jti) => records.get(jti),
    insert: (claims, jkt) => records.insert(claims.jti, jkt, claims.expiresAt * 1000, agentOf(claims)),
  }
}

/** Thumbprint of the key that a token is bound to, in the token itself or by record; null for an unbound one. */
export function boundKey({ jkt, jti }: SessionClaims, records: BindRecords): string | null | Promise<string | null> {
  return jkt ?? records.find(jti)
}

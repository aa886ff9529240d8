import { type PoolObserver, watchedPool } from '@plat/core'
import type { OnceSets, OnceVerdict } from '@plat/state'
import { agentOf, type SessionClaims } from '@plat/tokens'

/** Which token was bound to which key. The first bind of a `jti` wins, for as long as the token lives. */
export interface BindRecords {
  /** Thumbprint of the key that the token is bound to; null when it is not. */
  find(jti: string): string | null | Promise<string | null>
  /** Atomic: of several binds at the same time one is told `inserted`. */
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

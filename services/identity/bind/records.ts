import type { OnceSets, OnceVerdict } from '@plat/state'
import type { SessionClaims } from '@plat/tokens'

/** Tokens that can be bound at a time, about 200 bytes each. */
const MAX_RECORDS = 100_000

/** Which token was bound to which key. The first bind of a `jti` wins, for as long as the token lives. */
export interface BindRecords {
  /** Thumbprint of the key that the token is bound to; null when it is not. */
  find(jti: string): string | null | Promise<string | null>
  /** Atomic: of several binds at the same time one is told `inserted`. `until` in milliseconds since the epoch. */
  insert(jti: string, jkt: string, until: number): OnceVerdict | Promise<OnceVerdict>
}

/** In memory a token can be bound once per replica (document 1, "States"); in a shared backend once. */
export function bindRecords(sets: OnceSets): BindRecords {
  const records = sets.set('bind', MAX_RECORDS)
  return {
    find: (jti) => records.get(jti),
    insert: (jti, jkt, until) => records.insert(jti, jkt, until),
  }
}

/** Thumbprint of the key that a token is bound to, in the token itself or by record; null for an unbound one. */
export function boundKey({ jkt, jti }: SessionClaims, records: BindRecords): string | null | Promise<string | null> {
  return jkt ?? records.find(jti)
}

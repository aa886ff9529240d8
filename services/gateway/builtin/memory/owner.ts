import type { Identity } from '../../call/index.ts'
import type { Store } from './stores.ts'

/** Owner of memory, which is isolated from that of others. */
export interface Owner {
  readonly tenant: string
  readonly namespace: string
  readonly store: string
  readonly scope: Store['scope']
  /** An agent, `<agent>/<session>`, or a person as returned by `personOf`. */
  readonly who: string
}

/** Issuers of access tokens of external clients: their user names are distinct from those of other issuers. */
export type TrustedIssuers = ReadonlySet<string>

/**
 * Returns the person that a caller acts for: the issuer of the user if it is one of `identity.trustedIssuers`, a space, which issuers cannot
 * contain, and the user. Null if the caller acts for no user.
 */
export function personOf({ user, issuer }: Identity, trusted: TrustedIssuers): string | null {
  return user === null ? null : personNamed(user, trusted.has(issuer) ? issuer : '')
}

/** `issuer` is empty for users of the gateway's own sessions. */
export function personNamed(user: string, issuer: string): string {
  return `${issuer} ${user}`
}

/** Returns the owner of a caller's memory in a store, or the reason why it has none. */
export function ownerOf(store: Store, identity: Identity, trusted: TrustedIssuers): Owner | string {
  const { namespace, name, scope } = store
  const { tenant, agent, session } = identity
  const owned = { tenant, namespace, store: name, scope }
  if (scope === 'agent') return { ...owned, who: agent }
  if (scope === 'session') return { ...owned, who: `${agent}/${session}` }
  const person = personOf(identity, trusted)
  if (person === null) return `the store ${name} is for users, and the session acts for none`
  if (identity.verified === null && !trusted.has(identity.issuer)) {
    return `the store ${name} is for users, and the user of the session is not verified (plat_principal_verified)`
  }
  return { ...owned, who: person }
}

/** Unique text of an owner. */
export function ownerKey({ tenant, namespace, store, scope, who }: Owner): string {
  return JSON.stringify([tenant, namespace, store, scope, who])
}

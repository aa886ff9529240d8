import type { Identity } from '../../call/index.ts'
import type { Store } from './stores.ts'

/** Whose memory it is: what nobody else is ever told. */
export interface Owner {
  readonly tenant: string
  readonly namespace: string
  readonly store: string
  readonly scope: Store['scope']
  /** An agent, `<agent>/<session>`, or a person as `personOf` names it. */
  readonly who: string
}

/** Issuers whose access tokens external clients present: what they call a user is nobody that others call so. */
export type TrustedIssuers = ReadonlySet<string>

/**
 * The person that a caller acts for: the issuer of its user, where that is one of `identity.trustedIssuers`, a space, which no issuer has, and
 * the user. Null: it acts for nobody.
 */
export function personOf({ user, issuer }: Identity, trusted: TrustedIssuers): string | null {
  return user === null ? null : personNamed(user, trusted.has(issuer) ? issuer : '')
}

/** `issuer` is empty where the user is one of the gateway's own sessions. */
export function personNamed(user: string, issuer: string): string {
  return `${issuer} ${user}`
}

/** Whose memory of a store a caller may use; a text says why it has none. */
export function ownerOf(store: Store, identity: Identity, trusted: TrustedIssuers): Owner | string {
  const { namespace, name, scope } = store
  const { tenant, agent, session } = identity
  const owned = { tenant, namespace, store: name, scope }
  if (scope === 'agent') return { ...owned, who: agent }
  if (scope === 'session') return { ...owned, who: `${agent}/${session}` }
  const person = personOf(identity, trusted)
  if (person === null) return `the store ${name} keeps what is of users, and the session acts for none`
  if (identity.verified === null && !trusted.has(identity.issuer)) {
    return `the store ${name} keeps what is of users, and nobody has verified that the session acts for its user (plat_principal_verified)`
  }
  return { ...owned, who: person }
}

/** The text by which memory tells owners apart. */
export function ownerKey({ tenant, namespace, store, scope, who }: Owner): string {
  return JSON.stringify([tenant, namespace, store, scope, who])
}

import type { Identity } from '../../call/index.ts'
import type { TokenVaultConfig } from './config.ts'

/** Whose names of users are the same people, and whose accounts a caller may use. */
export interface OwnerRules {
  readonly realm: string
  /** Issuers whose access tokens external clients present. */
  readonly trustedIssuers: ReadonlySet<string>
  /** Those of them whose users may use accounts. */
  readonly externalUserIssuers: ReadonlySet<string>
  readonly isolateExternalIssuers: boolean
  readonly allowUnverifiedPrincipal: boolean
}

export function ownerRules(vault: TokenVaultConfig, trustedIssuers: readonly string[]): OwnerRules {
  const { userRealm, login, externalUserIssuers, isolateExternalIssuers, allowUnverifiedPrincipal } = vault
  return {
    realm: userRealm || login.issuer,
    trustedIssuers: new Set(trustedIssuers),
    externalUserIssuers: new Set(externalUserIssuers),
    isolateExternalIssuers,
    allowUnverifiedPrincipal,
  }
}

/** For whom a caller acts, as a realm and a name in it; a string says why it may use nobody's accounts. */
export function personOf(
  { user, verified, issuer }: Identity,
  rules: OwnerRules,
): { readonly realm: string; readonly user: string } | string {
  if (user === null) return 'the session acts for no user, and only a user has accounts'
  if (rules.trustedIssuers.has(issuer)) {
    if (!rules.externalUserIssuers.has(issuer)) return 'users of this issuer may use no connected accounts'
    return { realm: rules.isolateExternalIssuers ? issuer : rules.realm, user }
  }
  if (verified === null && !rules.allowUnverifiedPrincipal) {
    return 'nobody has verified that the session acts for its user (plat_principal_verified)'
  }
  return { realm: rules.realm, user }
}

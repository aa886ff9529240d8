import type { Identity } from '../../call/index.ts'
import type { TokenVaultConfig } from './config.ts'

/** Rules that map callers to account owners. */
export interface OwnerRules {
  readonly realm: string
  /** Issuers of access tokens of external clients. */
  readonly trustedIssuers: ReadonlySet<string>
  /** Trusted issuers whose users may use accounts. */
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

/** Returns the user of a caller as realm and name, or a text with the reason why the caller may use no account. */
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
    return 'it was not verified that the session acts for its user (plat_principal_verified)'
  }
  return { realm: rules.realm, user }
}

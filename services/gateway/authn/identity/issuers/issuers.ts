import type { PresentedToken } from '@plat/tokens'
import type { Identity } from '../../../call/index.ts'
import { type IssuerOptions, openTrustedIssuer, type TrustedIssuer } from './issuer.ts'

/** External identity providers (docs/spec/gateway.md, `identity.trustedIssuers`). */
export class TrustedIssuers {
  readonly #issuers: ReadonlyMap<string, TrustedIssuer>

  constructor(issuers: readonly TrustedIssuer[]) {
    this.#issuers = new Map(issuers.map((issuer) => [issuer.config.issuer, issuer]))
  }

  all(): readonly TrustedIssuer[] {
    return [...this.#issuers.values()]
  }

  /** Returns the issuers whose tokens are accepted for a server. */
  serving(server: string): readonly TrustedIssuer[] {
    return this.all().filter((issuer) => issuer.serves(server))
  }

  /** Returns the issuer that the unverified token names, or null for none of these, that is the broker. The issuer must then verify it. */
  claimed(token: PresentedToken): TrustedIssuer | null {
    if (this.#issuers.size === 0 || token.claimedIssuer === null) return null
    return this.#issuers.get(token.claimedIssuer) ?? null
  }

  /** Returns the issuer of this caller, or null for the broker. */
  of(identity: Pick<Identity, 'issuer'>): TrustedIssuer | null {
    return this.#issuers.get(identity.issuer) ?? null
  }
}

export async function openTrustedIssuers(
  configs: readonly IssuerOptions['config'][],
  shared: Omit<IssuerOptions, 'config'>,
): Promise<TrustedIssuers> {
  return new TrustedIssuers(await Promise.all(configs.map((config) => openTrustedIssuer({ ...shared, config }))))
}

import type { PresentedToken } from '@plat/tokens'
import type { Identity } from '../../../call/index.ts'
import { type IssuerOptions, openTrustedIssuer, type TrustedIssuer } from './issuer.ts'

/** The customers' identity providers (docs/spec/gateway.md, `identity.trustedIssuers`). */
export class TrustedIssuers {
  readonly #issuers: ReadonlyMap<string, TrustedIssuer>

  constructor(issuers: readonly TrustedIssuer[]) {
    this.#issuers = new Map(issuers.map((issuer) => [issuer.config.issuer, issuer]))
  }

  all(): readonly TrustedIssuer[] {
    return [...this.#issuers.values()]
  }

  /** Those whose tokens are taken for a server. */
  serving(server: string): readonly TrustedIssuer[] {
    return this.all().filter((issuer) => issuer.serves(server))
  }

  /** Whose token this claims to be; null: none of these, so the broker's. Nothing is trusted yet: who is named must verify it. */
  claimed(token: PresentedToken): TrustedIssuer | null {
    if (this.#issuers.size === 0 || token.claimedIssuer === null) return null
    return this.#issuers.get(token.claimedIssuer) ?? null
  }

  /** Who vouched for this caller; null: the broker. */
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

import { isPromise } from '@plat/core'
import {
  fault,
  isFault,
  type PresentedToken,
  type SessionClaims,
  type TokenFault,
  type VerificationResult,
  type Verifier,
} from '@plat/tokens'
import type { Identity } from '../../call/index.ts'
import { identityOf } from './identity.ts'
import type { TrustedIssuers } from './issuers/issuers.ts'
import type { Resources } from './resource.ts'

/** The identity of a caller, or why its token is refused. */
export type Vouched = Identity | TokenFault

export interface VouchersOptions {
  readonly sessions: Verifier
  readonly leewaySeconds: number
  readonly issuers: TrustedIssuers
  readonly resources: Resources
  /** Session tokens are exchanged for servers, so they are cached together with their verified claims. */
  readonly keepsTokens?: boolean | undefined
}

/** Verifies a token with the issuer that it names: the broker, or an external identity provider. */
export class TokenVerifiers {
  readonly #options: VouchersOptions
  /** Cached identities of cached claims. */
  readonly #identities = new WeakMap<SessionClaims, Identity>()
  readonly #claims = new WeakMap<Identity, SessionClaims>()
  readonly #tokens = new WeakMap<Identity, string>()

  constructor(options: VouchersOptions) {
    this.#options = options
  }

  /** Synchronous if the token's key is known. `path`: path of the request. */
  identify(token: PresentedToken, path: string): Vouched | Promise<Vouched> {
    const { issuers, resources, sessions } = this.#options
    const issuer = issuers.claimed(token)
    if (issuer !== null) {
      const server = resources.server(path)
      const resource = server === null ? null : resources.of(server)
      if (server === null || resource === null) return onlyMcp
      return issuer.identify(token, server, resource)
    }
    const answer = sessions.verify(token)
    return isPromise(answer)
      ? answer.then((verified) => this.#session(verified, token.text))
      : this.#session(answer, token.text)
  }

  /** Returns the broker token that this caller presented, or null for other issuers and if tokens are not retained. */
  sessionToken(identity: Identity): string | null {
    return this.#tokens.get(identity) ?? null
  }

  /** Returns the claims of the broker token that this caller presented, or null for other issuers. */
  claims(identity: Identity): SessionClaims | null {
    return this.#claims.get(identity) ?? null
  }

  /** Clears the cache of verified tokens. */
  clear(): void {
    this.#options.sessions.clear()
    for (const issuer of this.#options.issuers.all()) issuer.clear()
  }

  #session(claims: VerificationResult, token: string): Vouched {
    if (isFault(claims)) return claims
    const known = this.#identities.get(claims)
    if (known !== undefined) return known
    const identity = identityOf(claims, this.#options.leewaySeconds)
    this.#identities.set(claims, identity)
    this.#claims.set(identity, claims)
    if (this.#options.keepsTokens === true) this.#tokens.set(identity, token)
    return identity
  }
}

const onlyMcp = fault('audience', 'tokens of this issuer are taken at /mcp/<name> alone')

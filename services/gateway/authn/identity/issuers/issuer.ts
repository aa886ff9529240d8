import { readFile } from 'node:fs/promises'
import { type Clock, glob, whenReady } from '@plat/core'
import type { Log } from '@plat/process'
import {
  createJwtVerifier,
  fault,
  isFault,
  issuerKeys,
  type KeyFetcher,
  type KeySource,
  type PresentedToken,
  type TokenFault,
  type VerificationResult,
  type Verifier,
} from '@plat/tokens'
import type { Identity } from '../../../call/index.ts'
import type { TrustedIssuerConfig } from '../config.ts'
import { decodeExternal, type ExternalClaims } from './claims.ts'

/** Types of access tokens (RFC 9068), and those of older providers. */
export const ACCESS_TOKEN_TYPES: ReadonlySet<string | null> = new Set([null, 'jwt', 'at+jwt'])

export interface IssuerOptions {
  readonly config: TrustedIssuerConfig
  /** `identity.leewaySeconds`, the default of issuers. */
  readonly leewaySeconds: number
  /** Returns the tenant of a namespace from the broker's keys; empty without tenants. */
  readonly tenantOf: (namespace: string) => string
  readonly dialer: KeyFetcher
  readonly clock: Clock
  readonly log: Log
}

/** Verifies the access tokens of one external identity provider. */
export class TrustedIssuer {
  readonly config: TrustedIssuerConfig
  readonly keys: KeySource
  readonly #verifier: Verifier<ExternalClaims>
  readonly #leewaySeconds: number
  readonly #tenantOf: (namespace: string) => string
  readonly #servers: readonly ((name: string) => boolean)[]
  readonly #stepUps: readonly StepUp[]
  /** Cached identities of cached claims. */
  readonly #identities = new WeakMap<ExternalClaims, Identity>()

  constructor(options: IssuerOptions, caPEM: string | null) {
    const { config, clock } = options
    const algorithms = new Set(config.algorithms)
    this.config = config
    this.#tenantOf = options.tenantOf
    this.#leewaySeconds = config.leewaySeconds ?? options.leewaySeconds
    this.keys = issuerKeys({ ...options, ...config, refreshSeconds: config.jwksRefreshSeconds, caPEM })
    this.#verifier = createJwtVerifier({
      keys: this.keys,
      issuer: config.issuer,
      audience: null,
      leewaySeconds: this.#leewaySeconds,
      algorithms,
      clock,
      takesType: (typ) => ACCESS_TOKEN_TYPES.has(typ),
      decode: (jws) => decodeExternal(jws, config),
    })
    this.#servers = config.servers.map(glob)
    this.#stepUps = stepUpsOf(config.stepUpScopes)
  }

  /** Whether its tokens are accepted for this server. */
  serves(server: string): boolean {
    return this.#servers.length === 0 || this.#servers.some((matches) => matches(server))
  }

  /** RFC 8707: the token must be for exactly this resource, `<resourceBaseURL>/mcp/<server>`. */
  identify(
    token: PresentedToken,
    server: string,
    resource: string,
  ): Identity | TokenFault | Promise<Identity | TokenFault> {
    if (!this.serves(server)) return fault('issuer', 'tokens of this issuer are not accepted for this server')
    return whenReady(this.#verifier.verify(token), (verified) => this.#judge(verified, resource))
  }

  clear(): void {
    this.#verifier.clear()
  }

  /** Returns every scope that this call needs, without prefix (`stepUpScopes` apply to tool calls). */
  scopesFor(server: string, tool: string | null): readonly string[] {
    const more = tool === null ? [] : this.#stepUps.filter((one) => one.server === server && one.matches(tool))
    return [...new Set([`tools:${server}`, ...more.flatMap((one) => one.scopes)])]
  }

  /** Returns every scope that calls of this server may need, without prefix. */
  scopesOf(server: string): readonly string[] {
    const more = this.#stepUps.filter((one) => one.server === server)
    return [...new Set([`tools:${server}`, ...more.flatMap((one) => one.scopes)])]
  }

  #judge(claims: VerificationResult<ExternalClaims>, resource: string): Identity | TokenFault {
    if (isFault(claims)) return claims
    if (!claims.audiences.includes(resource)) return fault('audience', `token is not for the resource ${resource}`)
    const known = this.#identities.get(claims)
    const { namespace } = this.config
    const tenant = this.#tenantOf(namespace)
    if (known !== undefined && known.tenant === tenant) return known
    const identity = externalIdentity(claims, { tenant, namespace, leewaySeconds: this.#leewaySeconds })
    this.#identities.set(claims, identity)
    return identity
  }
}

/** Reads the CA file. Rejects if it cannot be read. */
export async function openTrustedIssuer(options: IssuerOptions): Promise<TrustedIssuer> {
  const { caFile } = options.config
  return new TrustedIssuer(options, caFile === '' ? null : await readFile(caFile, 'utf8'))
}

interface StepUp {
  readonly server: string
  readonly matches: (tool: string) => boolean
  readonly scopes: readonly string[]
}

/** Keys are `<server>/<tool glob>`; server names contain no slash. */
function stepUpsOf(config: TrustedIssuerConfig['stepUpScopes']): readonly StepUp[] {
  return Object.entries(config).map(([key, scopes]) => {
    const slash = key.indexOf('/')
    return { server: key.slice(0, slash), matches: glob(key.slice(slash + 1)), scopes }
  })
}

function externalIdentity(
  claims: ExternalClaims,
  { tenant, namespace, leewaySeconds }: { tenant: string; namespace: string; leewaySeconds: number },
): Identity {
  return {
    tenant,
    trustDomain: '',
    namespace,
    agent: claims.agent,
    session: claims.session,
    user: claims.user,
    groups: claims.groups,
    // How the broker verified a user (docs/spec/broker-api.md); not applicable.
    verified: null,
    tier: '',
    scopes: new Set(claims.scopes),
    jti: claims.jti,
    ancestors: [],
    delegators: [],
    forkedFrom: [],
    chain: [],
    expiresAt: (claims.expiresAt + leewaySeconds) * 1000,
    jkt: claims.jkt,
    issuer: claims.issuer,
    forkRoot: null,
    inheritedTaints: [],
  }
}

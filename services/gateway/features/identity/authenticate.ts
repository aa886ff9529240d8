import type { Clock } from '@plat/core'
import type { Log } from '@plat/process'
import {
  type AuthReason,
  CLASSICAL,
  CLASSICAL_AND_ML_DSA,
  createVerifier,
  isFault,
  joinSources,
  jwksSource,
  type KeyFetcher,
  type KeySource,
  ML_DSA,
  pemSource,
  type SessionClaims,
  type Verified,
  type Verifier,
} from '@plat/tokens'
import { type Denial, deny, type Identity, type WireRequest } from '../../call/index.ts'
import { bearerChallenge, dpopChallenge, resourceMetadataUrl } from './challenge.ts'
import { createFailureLog, type FailureLog } from './failures.ts'
import { identityOf } from './identity.ts'

/** The keys of block `identity` (document 3) that authentication reads. */
export interface AuthenticatorConfig {
  readonly publicKeyFiles: readonly string[]
  readonly jwksURL: string
  readonly jwksRefreshSeconds: number
  /** Empty: not checked. */
  readonly issuer: string
  readonly audience: string
  readonly leewaySeconds: number
  /** Off: ML-DSA tokens are refused, whatever keys there are. */
  readonly acceptMLDSA: boolean
  readonly mldsaPublicKeyFiles: readonly string[]
  readonly resourceBaseURL: string
}

/** What authentication counts. `compose` maps each to its row of the metric table. */
export interface AuthMetrics {
  /** `plat_gateway_auth_failures_total{reason}` */
  failed(reason: AuthReason): void
  /** `plat_gateway_trusted_keys` */
  trustedKeys(count: number): void
}

export interface AuthenticatorOptions {
  readonly config: AuthenticatorConfig
  readonly dialer: KeyFetcher
  readonly clock: Clock
  readonly log: Log
  readonly metrics: AuthMetrics
}

/** Says who is calling. */
export interface Authenticator {
  /**
   * Reads the credentials of a request and takes them out of `wire.headers`, whatever the answer. A plain value when the
   * token's key is known. A 401 denial carries `data.challenge` (the whole `WWW-Authenticate` value) and `data.reason`.
   */
  authenticate(wire: WireRequest): Identity | Denial | Promise<Identity | Denial>
  /** Forgets verified tokens, so that each is verified again. */
  clear(): void
  close(): void
}

/** How often the gauge of trusted keys follows the key sources, in milliseconds. */
const COUNT_KEYS_EVERY_MS = 10_000

/** Starts the key sources of the configuration. Rejects when a key file cannot be used; a JWKS address may come up later. */
export async function createAuthenticator(options: AuthenticatorOptions): Promise<Authenticator> {
  const { config, clock, metrics } = options
  const algorithms = config.acceptMLDSA ? CLASSICAL_AND_ML_DSA : CLASSICAL
  const keys = joinSources(keySources(options, algorithms))
  await keys.start()
  const { issuer, audience, leewaySeconds } = config
  const verifier = createVerifier({ keys, issuer, audience, leewaySeconds, algorithms, clock })
  metrics.trustedKeys(keys.size)
  const stopCounting = clock.every(COUNT_KEYS_EVERY_MS, () => metrics.trustedKeys(keys.size))
  return new SessionAuthenticator(options, verifier, () => {
    stopCounting()
    keys.close()
  })
}

function keySources({ config, dialer, clock, log }: AuthenticatorOptions, algorithms: typeof CLASSICAL): KeySource[] {
  const { publicKeyFiles, mldsaPublicKeyFiles, acceptMLDSA, jwksURL: url, jwksRefreshSeconds: refreshSeconds } = config
  const sources: KeySource[] = []
  if (publicKeyFiles.length > 0) sources.push(pemSource(publicKeyFiles, { clock, log }))
  if (acceptMLDSA && mldsaPublicKeyFiles.length > 0) {
    sources.push(pemSource(mldsaPublicKeyFiles, { clock, log, algorithms: ML_DSA }))
  }
  if (url !== '') sources.push(jwksSource({ url, refreshSeconds, dialer, clock, log, algorithms }))
  return sources
}

/** Exactly one token in the alphabet of a compact JWS; the scheme's case does not matter (RFC 9110 section 11.1). */
const BEARER = /^bearer +([A-Za-z0-9_.-]+)$/i

class SessionAuthenticator implements Authenticator {
  readonly #config: AuthenticatorConfig
  readonly #metrics: AuthMetrics
  readonly #verifier: Verifier
  readonly #failures: FailureLog
  readonly #stop: () => void
  /** A remembered token has its identity ready. */
  readonly #identities = new WeakMap<SessionClaims, Identity>()

  constructor({ config, metrics, clock, log }: AuthenticatorOptions, verifier: Verifier, stop: () => void) {
    this.#config = config
    this.#metrics = metrics
    this.#verifier = verifier
    this.#failures = createFailureLog(clock, log)
    this.#stop = stop
  }

  authenticate(wire: WireRequest): Identity | Denial | Promise<Identity | Denial> {
    const { authorization } = wire.headers
    stripCredentials(wire)
    if (authorization === undefined) return this.#refuse(wire, 'missing', 'a session token is required')
    const token = BEARER.exec(authorization)?.[1]
    if (token === undefined) {
      return this.#refuse(wire, 'malformed', 'send one session token as "Authorization: Bearer <token>"')
    }
    const answer = this.#verifier.verify(token)
    if (answer instanceof Promise) return answer.then((verified) => this.#judge(wire, verified))
    return this.#judge(wire, answer)
  }

  clear(): void {
    this.#verifier.clear()
  }

  close(): void {
    this.#stop()
  }

  #judge(wire: WireRequest, answer: Verified): Identity | Denial {
    if (isFault(answer)) return this.#refuse(wire, answer.reason, answer.message)
    if (answer.jkt !== null) return this.#refuseBound(wire)
    const known = this.#identities.get(answer)
    if (known !== undefined) return known
    const identity = identityOf(answer, this.#config.leewaySeconds)
    this.#identities.set(answer, identity)
    return identity
  }

  #refuse(wire: WireRequest, reason: AuthReason, message: string): Denial {
    this.#count(wire, reason)
    const challenge = bearerChallenge({
      ...(reason === 'missing' ? {} : { error: 'invalid_token', error_description: message }),
      ...this.#metadata(wire),
    })
    return deny('unauthenticated', message, { data: { reason, challenge } })
  }

  /** A token that is bound to a key is worth nothing without a proof by that key: whoever shows it may have stolen it. */
  #refuseBound(wire: WireRequest): Denial {
    this.#count(wire, 'binding')
    const message = 'this token is bound to a DPoP key; proofs at the gateway: not built yet in this version'
    const challenge = dpopChallenge({ error: 'invalid_token', error_description: message, ...this.#metadata(wire) })
    return deny('dpop_required', message, { data: { reason: 'binding', challenge } })
  }

  #count(wire: WireRequest, reason: AuthReason): void {
    this.#metrics.failed(reason)
    this.#failures.note(reason, wire.remote)
  }

  #metadata(wire: WireRequest): { resource_metadata?: string } {
    const url = resourceMetadataUrl(this.#config.resourceBaseURL, wire.path)
    return url === null ? {} : { resource_metadata: url }
  }
}

function stripCredentials({ headers }: WireRequest): void {
  delete headers.authorization
  delete headers.dpop
  delete headers.cookie
  delete headers['proxy-authorization']
}

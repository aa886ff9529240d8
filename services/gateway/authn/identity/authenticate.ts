import { type Clock, isPromise, type PoolObservers } from '@plat/core'
import type { RawRoute } from '@plat/http'
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
} from '@plat/tokens'
import type { Static } from 'typebox'
import { type Denial, deny, type Identity, type WireRequest } from '../../call/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'
import { Credentials } from './authorization-header.ts'
import { bearerChallenge, type ChallengeParameters, dpopChallenge } from './challenge.ts'
import type { identityBlock } from './config.ts'
import { type DpopConfig, DpopGate, type DpopGateOptions, type DpopRefusal, type PresentedToken } from './dpop.ts'
import { createFailureLog, type FailureLog } from './failures.ts'
import { openTrustedIssuers, type TrustedIssuers } from './issuers/issuers.ts'
import { createScopeRules, type ScopeRules } from './issuers/scopes.ts'
import { createMetadataRoute } from './metadata.ts'
import { type AuthMetrics, createAuthMetrics } from './metrics.ts'
import { Resources } from './resource.ts'
import { TokenVerifiers, type Vouched } from './token-verifiers.ts'

/** docs/spec/gateway.md, block `identity`. */
export type AuthenticatorConfig = Readonly<Static<typeof identityBlock.schema>>

export interface AuthenticatorOptions {
  readonly config: AuthenticatorConfig
  readonly dpop: DpopConfig
  /** Whether `sessionToken` is used; default: no. */
  readonly keepsTokens?: boolean
  /** Tenants of `tenantsFile`; absent: the broker's keys alone name them. */
  readonly tenants?: Boundaries
  readonly dialer: KeyFetcher
  readonly clock: Clock
  readonly log: Log
  readonly metrics: GatewayMetrics
  readonly pools?: PoolObservers<'dpop_proofs'> | undefined
  /** Where replicas share used proofs; absent: there are no others. */
  readonly sharedProofs?: DpopGateOptions['shared']
}

/** Tenants of a gateway. */
interface Boundaries {
  readonly isOn: boolean
  /** Returns the tenant of a namespace. */
  of(namespace: string): string
  /** Returns why no call of this identity is accepted, or null. */
  crossing(who: Identity): string | null
}

/** Next step of a caller whose token has expired. */
const NEW_TOKEN = '; mint a new one (plat token mint <agent>), or use plat run, which renews it'

/** Authenticates callers. */
export interface Authenticator {
  /**
   * Reads the credentials of a request and removes them from `wire.headers`, whatever the result. Synchronous if the token's key is
   * known and no proof is required. A 401 denial has `data.challenge` (the whole `WWW-Authenticate` value) and `data.reason`.
   */
  authenticate(wire: WireRequest): Identity | Denial | Promise<Identity | Denial>
  /** Returns the broker token that a caller presented, only for exchange at the broker; null for other issuers. */
  sessionToken(identity: Identity): string | null
  /** Returns the caller as in its session token, with `act` unchanged; null for other issuers. */
  subject(identity: Identity): { readonly id: string; readonly act: unknown } | null
  /** Returns the tenant of a namespace by `tenantsFile`, or else by the broker's keys; empty without tenants. */
  tenantOf(namespace: string): string
  /** Scopes that calls need, by the issuer of the caller. */
  readonly scopes: ScopeRules
  /** The metadata of the protected resources (RFC 9728). */
  readonly metadata: RawRoute
  /** Clears the cache of verified tokens. */
  clear(): void
  close(): void
}

/** Interval of updates of the trusted keys gauge, in milliseconds. */
const COUNT_KEYS_EVERY_MS = 10_000

/** Starts the configured key sources. Rejects if a key file is unusable; a JWKS address may become available later. */
export async function createAuthenticator(options: AuthenticatorOptions): Promise<Authenticator> {
  const { config, clock, dialer, log } = options
  const metrics = createAuthMetrics(options.metrics)
  const algorithms = config.acceptMLDSA ? CLASSICAL_AND_ML_DSA : CLASSICAL
  const keys = joinSources(keySources(options, algorithms))
  const { issuer, audience, leewaySeconds } = config
  const sessions = createVerifier({ keys, issuer, audience, leewaySeconds, algorithms, clock })
  const { tenants } = options
  const tenantOf = (namespace: string) =>
    tenants?.isOn === true ? tenants.of(namespace) : keys.tenants.ofNamespace(namespace)
  const issuers = await openTrustedIssuers(config.trustedIssuers, { leewaySeconds, tenantOf, dialer, clock, log })
  const resources = new Resources(config.resourceBaseURL)
  const { keepsTokens } = options
  const vouchers = new TokenVerifiers({ sessions, leewaySeconds, issuers, resources, keepsTokens })
  const everyKey = joinSources([keys, ...issuers.all().map((one) => one.keys)])
  await everyKey.start()
  metrics.trustedKeys(everyKey.size)
  const stopCounting = clock.every(COUNT_KEYS_EVERY_MS, () => metrics.trustedKeys(everyKey.size))
  const stop = () => {
    stopCounting()
    everyKey.close()
  }
  return new TokenAuthenticator(options, { vouchers, issuers, resources, tenantOf, metrics, stop })
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

interface Parts {
  readonly vouchers: TokenVerifiers
  readonly issuers: TrustedIssuers
  readonly resources: Resources
  readonly tenantOf: (namespace: string) => string
  readonly metrics: AuthMetrics
  readonly stop: () => void
}

class TokenAuthenticator implements Authenticator {
  readonly scopes: ScopeRules
  readonly metadata: RawRoute
  readonly #parts: Parts
  readonly #metrics: AuthMetrics
  readonly #credentials = new Credentials()
  readonly #dpop: DpopGate
  readonly #failures: FailureLog
  readonly #tenants: Boundaries | undefined

  constructor(options: AuthenticatorOptions, parts: Parts) {
    const { config, dpop, pools, tenants, sharedProofs, clock, log } = options
    const { issuers, resources, metrics } = parts
    this.scopes = createScopeRules(issuers)
    this.metadata = createMetadataRoute({ issuers, resources, dpopRequired: dpop.require })
    this.#parts = parts
    this.#tenants = tenants
    this.#metrics = metrics
    this.#dpop = new DpopGate({
      config: dpop,
      resourceBaseURL: config.resourceBaseURL,
      clock,
      shared: sharedProofs,
      observer: pools?.of('dpop_proofs'),
      counted: (outcome) => metrics.proven(outcome),
    })
    this.#failures = createFailureLog(clock, log)
  }

  authenticate(wire: WireRequest): Identity | Denial | Promise<Identity | Denial> {
    const { dpop } = wire.headers
    const authorization = wire.headers.authorization ?? keyOf(wire)
    stripCredentials(wire)
    if (authorization === undefined) return this.#refuse(wire, 'missing', 'a session token is required')
    const read = this.#credentials.read(authorization, wire.body)
    if (read === null) {
      return this.#refuse(wire, 'malformed', 'send one session token as "Authorization: Bearer <token>"')
    }
    const proof = typeof dpop === 'string' ? dpop : undefined
    const presented: PresentedToken = { token: read.token.text, scheme: read.scheme, proof }
    const answer = this.#parts.vouchers.identify(read.token, wire.path)
    return isPromise(answer)
      ? answer.then((vouched) => this.#judge(wire, presented, vouched))
      : this.#judge(wire, presented, answer)
  }

  sessionToken(identity: Identity): string | null {
    return this.#parts.vouchers.sessionToken(identity)
  }

  subject(identity: Identity): ReturnType<Authenticator['subject']> {
    const claims = this.#parts.vouchers.claims(identity)
    return claims === null ? null : { id: claims.subject, act: claims.members.act }
  }

  tenantOf(namespace: string): string {
    return this.#parts.tenantOf(namespace)
  }

  clear(): void {
    this.#parts.vouchers.clear()
  }

  close(): void {
    this.#parts.stop()
  }

  #judge(
    wire: WireRequest,
    presented: PresentedToken,
    answer: Vouched,
  ): Identity | Denial | Promise<Identity | Denial> {
    if (isFault(answer)) return this.#refuse(wire, answer.reason, answer.message)
    const crossing = this.#tenants?.crossing(answer) ?? null
    if (crossing !== null) return this.#refuse(wire, 'binding', crossing)
    const no = this.#dpop.ask(wire, presented, answer)
    if (no === null) return answer
    if (isPromise(no)) return no.then((late) => this.#judgeProven(wire, answer, late))
    return this.#refuseUnproven(wire, no)
  }

  #judgeProven(wire: WireRequest, identity: Identity, no: DpopRefusal | Denial | null): Identity | Denial {
    if (no === null) return identity
    return 'error' in no ? this.#refuseUnproven(wire, no) : no
  }

  #refuse(wire: WireRequest, reason: AuthReason, message: string): Denial {
    this.#count(wire, reason)
    const challenge = bearerChallenge({
      ...(reason === 'missing' ? this.#wanted(wire) : { error: 'invalid_token', error_description: message }),
      ...this.#metadata(wire),
    })
    const why = reason === 'expired' ? `${message}${NEW_TOKEN}` : message
    return deny('unauthenticated', why, { data: { reason, challenge } })
  }

  #refuseUnproven(wire: WireRequest, { code, error, message }: DpopRefusal): Denial {
    this.#count(wire, 'binding')
    const challenge = dpopChallenge({ error, error_description: message, ...this.#metadata(wire) })
    return deny(code, message, { data: { reason: 'binding', challenge } })
  }

  #count(wire: WireRequest, reason: AuthReason): void {
    this.#metrics.failed(reason)
    this.#failures.note(reason, wire.remote)
  }

  /** Returns the scope for this server if all of its issuers write it alike, so that a client can request it at once. */
  #wanted(wire: WireRequest): Pick<ChallengeParameters, 'scope'> {
    const server = this.#parts.resources.server(wire.path)
    if (server === null) return {}
    const scopes = new Set(this.#parts.issuers.serving(server).map((one) => `${one.config.scopePrefix}tools:${server}`))
    const [scope] = scopes
    return scope === undefined || scopes.size > 1 ? {} : { scope }
  }

  #metadata(wire: WireRequest): Pick<ChallengeParameters, 'resource_metadata'> {
    const { resources } = this.#parts
    const url = resources.server(wire.path) === null ? null : resources.metadataURL(wire.path)
    return url === null ? {} : { resource_metadata: url }
  }
}

/** Headers in which clients of models send the session token as their key. */
const KEY_HEADERS = ['x-api-key', 'x-goog-api-key'] as const

/** Returns the session token of a client that sends it as the key of a model provider, as `Authorization` would have it. */
function keyOf({ path, headers }: WireRequest): string | undefined {
  if (!path.startsWith('/llm/')) return undefined
  const key = KEY_HEADERS.map((name) => headers[name]).find((value) => value !== undefined)
  return typeof key === 'string' ? `Bearer ${key}` : undefined
}

/**
 * Empties the headers with credentials. They are not deleted: an object with deleted members takes three times the memory and is slower to
 * read, and a copy takes a third of a microsecond.
 */
function stripCredentials({ headers, body }: WireRequest): void {
  if (headers.authorization !== undefined) headers.authorization = undefined
  if (headers.dpop !== undefined) headers.dpop = undefined
  for (const name of KEY_HEADERS) if (headers[name] !== undefined) headers[name] = undefined
  if (headers.cookie !== undefined) headers.cookie = undefined
  if (headers['proxy-authorization'] !== undefined) headers['proxy-authorization'] = undefined
  // A body is the request of `node:http`, which has the headers too.
  if ('headers' in body && body.headers !== headers) body.headers = headers
}

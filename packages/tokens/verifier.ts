import type { Clock } from '@plat/core'
import type { AlgorithmName, PublicKey } from '@plat/keys'
import { CLASSICAL } from './algorithms.ts'
import { decodeClaims, type SessionClaims } from './claims.ts'
import { fault, isFault, type TokenFault } from './fault.ts'
import { type Jws, parseJws } from './jws.ts'
import type { KeySource } from './keyset.ts'
import type { TimedClaims } from './members.ts'
import { PresentedToken } from './presented-token.ts'

/** Number of slots for marks of tokens verified once, four bytes each; a power of two. */
const MET_PLACES = 4096
/** Number of slots for marks of cached tokens, one byte each; a power of two, far more than there are tokens. */
const KNOWN_PLACES = 32_768
/** Maximum number of cached tokens, about 3 KB each. */
const MAX_REMEMBERED = 8192
/** Maximum time a verified token is cached, in milliseconds; never beyond its expiry. */
const REMEMBER_MS = 5 * 60 * 1000

/** Signed tokens that are never an identity: transaction tokens (docs/spec/broker-api.md), DPoP proofs (RFC 9449). */
const OTHER_TOKEN_TYPES: ReadonlySet<string> = new Set(['txntoken+jwt', 'dpop+jwt'])

interface CommonOptions {
  readonly keys: KeySource
  /** Exact `iss`; not checked when it is absent or empty. */
  readonly issuer?: string
  /** Skew granted on `exp`, `nbf` and `iat`, in seconds. */
  readonly leewaySeconds: number
  /** Tokens of other algorithms are refused before a key is searched. Default: EdDSA only. */
  readonly algorithms?: ReadonlySet<AlgorithmName>
  readonly clock: Clock
}

export interface VerifierOptions extends CommonOptions {
  /** One of the token's `aud` must be this. */
  readonly audience: string
  /** Required trust domain of `sub`; any when absent. */
  readonly trustDomain?: string
}

/** Options for tokens of another kind than session tokens. */
export interface JwtVerifierOptions<C extends TimedClaims> extends CommonOptions {
  /** One of the token's `aud` must be this; null: the caller checks the audiences. */
  readonly audience: string | null
  /** Returns whether tokens with this `typ` (lower case, null when absent) are of this kind. */
  takesType(typ: string | null): boolean
  /** Decodes the payload signed by the key with this thumbprint. */
  decode(jws: Jws, keyThumbprint: string): C | TokenFault
}

/** Result of a verifier: claims or a fault, synchronously unless keys had to be fetched. */
export type VerificationResult<C = SessionClaims> = C | TokenFault

export interface Verifier<C = SessionClaims> {
  /** Verifies a token for `audience` (default: the configured one). Synchronous when its key is known. */
  verify(token: string | PresentedToken, audience?: string): VerificationResult<C> | Promise<VerificationResult<C>>
  trustedKeys(): number
  /** Drops every cached token. */
  clear(): void
}

interface Remembered<C> {
  readonly claims: C
  /** Milliseconds since the epoch. */
  readonly until: number
}

/**
 * Creates a verifier of session tokens (docs/spec/broker-api.md), each signed by a key of its namespace's tenant. Create it once: it caches the
 * tokens that it has verified twice.
 */
export function createVerifier({ trustDomain, ...options }: VerifierOptions): Verifier {
  const { keys } = options
  return createJwtVerifier({
    ...options,
    takesType: (typ) => typ === null || !OTHER_TOKEN_TYPES.has(typ),
    decode({ payload }, keyThumbprint) {
      const tenant = keys.tenants.ofKey(keyThumbprint)
      const claims = decodeClaims(payload, keyThumbprint, tenant)
      if (isFault(claims)) return claims
      // A tenant with its own key must not sign tokens of another tenant, nor of namespaces without a tenant.
      if (keys.tenants.ofNamespace(claims.namespace) !== tenant) return foreignKey
      if (trustDomain === undefined || claims.trustDomain === trustDomain) return claims
      return fault('binding', 'token is of another trust domain')
    },
  })
}

/** Creates a verifier of tokens in a foreign format, with the same rules for keys, algorithms, times and caching. */
export function createJwtVerifier<C extends TimedClaims>(options: JwtVerifierOptions<C>): Verifier<C> {
  return new JwtVerifier(options)
}

/**
 * Marks of tokens verified before. Most tokens of a broker are verified once: caching their claims would cost more garbage collection than it saves.
 * Rarely two tokens share a mark; then one is cached a verification early.
 */
class MetTokens {
  readonly #marks = new Int32Array(MET_PLACES)

  /** Returns whether this token was presented recently, and marks it. */
  again({ fingerprint }: PresentedToken): boolean {
    const place = fingerprint & (MET_PLACES - 1)
    const met = this.#marks[place] === fingerprint
    this.#marks[place] = fingerprint
    return met
  }
}

/** Verified tokens by SHA-256 of the whole token: strict parsing leaves each signed content only one text. */
class KnownTokens<C> {
  readonly #claims = new Map<string, Remembered<C>>()
  /** Slots of the fingerprints of cached tokens: an unmarked token needs no hash and no look-up. */
  readonly #marks = new Uint8Array(KNOWN_PLACES)

  get size(): number {
    return this.#claims.size
  }

  get(token: PresentedToken): Remembered<C> | undefined {
    return this.#marks[token.fingerprint & (KNOWN_PLACES - 1)] === 1 ? this.#claims.get(token.digest) : undefined
  }

  set(token: PresentedToken, remembered: Remembered<C>): void {
    this.#marks[token.fingerprint & (KNOWN_PLACES - 1)] = 1
    this.#claims.set(token.digest, remembered)
  }
}

class JwtVerifier<C extends TimedClaims> implements Verifier<C> {
  readonly #options: JwtVerifierOptions<C>
  /** Algorithms accepted in a header. */
  readonly #algorithms: ReadonlySet<string>
  readonly #met = new MetTokens()
  /**
   * Cache of tokens presented at least twice, in a young and an old half. A whole half is dropped at once, because a `Map` that deletes its first
   * entry repeatedly skips all deleted ones.
   */
  #young = new KnownTokens<C>()
  #old = new KnownTokens<C>()
  /** When the young half becomes the old one, however few entries it has; milliseconds since the epoch. */
  #turnsAt = 0
  #revision = -1

  constructor(options: JwtVerifierOptions<C>) {
    this.#options = options
    this.#algorithms = options.algorithms ?? CLASSICAL
  }

  verify(
    token: string | PresentedToken,
    audience = this.#options.audience,
  ): VerificationResult<C> | Promise<VerificationResult<C>> {
    const presented = typeof token === 'string' ? new PresentedToken(token) : token
    if (audience !== this.#options.audience) return this.#verifyNew(presented.text, audience, null)
    return this.#recall(presented) ?? this.#verifyNew(presented.text, audience, presented)
  }

  trustedKeys(): number {
    return this.#options.keys.size
  }

  clear(): void {
    this.#young = new KnownTokens()
    this.#old = new KnownTokens()
  }

  #recall(token: PresentedToken): C | null {
    if (this.#revision !== this.#options.keys.revision) {
      this.clear()
      this.#revision = this.#options.keys.revision
      return null
    }
    const found = this.#young.get(token) ?? this.#old.get(token)
    return found !== undefined && this.#options.clock.now() < found.until ? found.claims : null
  }

  #remember(token: PresentedToken, claims: C): void {
    const now = this.#options.clock.now()
    if (this.#young.size >= MAX_REMEMBERED / 2 || now >= this.#turnsAt) {
      this.#old = this.#young
      this.#young = new KnownTokens()
      this.#turnsAt = now + REMEMBER_MS
    }
    const expiry = (claims.expiresAt + this.#options.leewaySeconds) * 1000
    this.#young.set(token, { claims, until: Math.min(expiry, now + REMEMBER_MS) })
  }

  #verifyNew(
    token: string,
    audience: string | null,
    presented: PresentedToken | null,
  ): VerificationResult<C> | Promise<VerificationResult<C>> {
    const jws = parseJws(token)
    if (isFault(jws)) return jws
    if (!this.#algorithms.has(jws.header.alg)) return fault('signature', 'token algorithm is not accepted')
    if (!this.#options.takesType(jws.header.typ)) return fault('typ', 'token of this "typ" is not taken here')
    const { keys } = this.#options
    const key = keys.find(jws.header.kid)
    if (key !== null) return this.#verifyWith(key, jws, audience, presented)
    const requested = keys.refresh()
    if (requested === null) return unknownKey
    return requested.then(() => {
      const found = keys.find(jws.header.kid)
      return found === null ? unknownKey : this.#verifyWith(found, jws, audience, presented)
    })
  }

  #verifyWith(
    key: PublicKey,
    jws: Jws,
    audience: string | null,
    presented: PresentedToken | null,
  ): VerificationResult<C> {
    // The key determines the algorithm; the header must agree.
    if (key.algorithm.name !== jws.header.alg) return fault('signature', 'token algorithm is not that of its key')
    if (!key.algorithm.verify(jws.input, key.key, jws.signature)) return fault('signature', 'token signature is wrong')
    const claims = this.#options.decode(jws, key.kid)
    if (isFault(claims)) return claims
    const bad = this.#judge(claims, audience)
    if (bad !== null) return bad
    if (presented !== null && this.#met.again(presented)) this.#remember(presented, claims)
    return claims
  }

  #judge(claims: C, audience: string | null): TokenFault | null {
    const { issuer, leewaySeconds, clock } = this.#options
    const now = clock.now() / 1000
    if (now >= claims.expiresAt + leewaySeconds) return fault('expired', 'token has expired')
    const validFrom = Math.max(claims.notBefore ?? 0, claims.issuedAt)
    if (now < validFrom - leewaySeconds) return fault('expired', 'token is not valid yet')
    if (issuer !== undefined && issuer !== '' && claims.issuer !== issuer)
      return fault('issuer', 'token is of another issuer')
    if (audience === null || claims.audiences.includes(audience)) return null
    return fault('audience', 'token is for another audience')
  }
}

const foreignKey = fault('binding', 'token is signed by a key that is not of its tenant')
const unknownKey = fault('kid', 'token is signed by no key that is trusted')

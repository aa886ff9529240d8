import type { Clock } from '@plat/core'
import type { AlgorithmName, PublicKey } from '@plat/keys'
import { CLASSICAL } from './algorithms.ts'
import { decodeClaims, type SessionClaims } from './claims.ts'
import { fault, isFault, type TokenFault } from './fault.ts'
import { type Jws, parseJws } from './jws.ts'
import type { KeySource } from './keyset.ts'
import { PresentedToken } from './presented-token.ts'

/** Places for marks of tokens that were verified once, four bytes each; a power of two. */
const MET_PLACES = 4096
/** Places for marks of tokens that are remembered, a byte each; a power of two, and many more than there are tokens. */
const KNOWN_PLACES = 32_768
/** Verified tokens that are remembered at most, about 3 KB each. */
const MAX_REMEMBERED = 8192
/** How long a verified token is remembered at most, in milliseconds; never beyond its expiry. */
const REMEMBER_MS = 5 * 60 * 1000

/** Tokens that are signed as well and never an identity: transaction tokens (docs/spec/broker-api.md), DPoP proofs (RFC 9449). */
const OTHER_TOKEN_TYPES: ReadonlySet<string> = new Set(['txntoken+jwt', 'dpop+jwt'])

/** What every kind of token says of its own validity. Times are Unix seconds. */
export interface TimedClaims {
  readonly issuer: string
  readonly audiences: readonly string[]
  readonly issuedAt: number
  readonly notBefore: number | null
  readonly expiresAt: number
}

interface CommonOptions {
  readonly keys: KeySource
  /** Exact `iss`; not checked when it is absent or empty. */
  readonly issuer?: string
  /** Skew granted on `exp`, `nbf` and `iat`, in seconds. */
  readonly leewaySeconds: number
  /** Tokens of others are refused before a key is looked for. Default: EdDSA alone. */
  readonly algorithms?: ReadonlySet<AlgorithmName>
  readonly clock: Clock
}

export interface VerifierOptions extends CommonOptions {
  /** One of the token's `aud` must be this. */
  readonly audience: string
  /** The trust domain that `sub` must be of; any when absent. */
  readonly trustDomain?: string
}

/** How tokens of another kind than ours are read. */
export interface JwtVerifierOptions<C extends TimedClaims> extends CommonOptions {
  /** One of the token's `aud` must be this; null: whoever asks judges the audiences. */
  readonly audience: string | null
  /** Whether a token with this `typ` (lower case, null when absent) is of this kind at all. */
  takesType(typ: string | null): boolean
  /** Reads what was signed by the key with this thumbprint. */
  decode(jws: Jws, keyThumbprint: string): C | TokenFault
}

/** What a verifier answers: claims or a fault, at once unless a key had to be asked for. */
export type VerificationResult<C = SessionClaims> = C | TokenFault

export interface Verifier<C = SessionClaims> {
  /** Verifies a token for `audience` (the configured one when absent). A plain value when its key is known. */
  verify(token: string | PresentedToken, audience?: string): VerificationResult<C> | Promise<VerificationResult<C>>
  trustedKeys(): number
  /** Forgets every verified token. */
  clear(): void
}

interface Remembered<C> {
  readonly claims: C
  /** Milliseconds since the epoch. */
  readonly until: number
}

/** A verifier of session tokens (docs/spec/broker-api.md), each signed by a key of its namespace's tenant. Create it once: it remembers the tokens that it has verified twice. */
export function createVerifier({ trustDomain, ...options }: VerifierOptions): Verifier {
  const { keys } = options
  return createJwtVerifier({
    ...options,
    takesType: (typ) => typ === null || !OTHER_TOKEN_TYPES.has(typ),
    decode({ payload }, keyThumbprint) {
      const tenant = keys.tenants.ofKey(keyThumbprint)
      const claims = decodeClaims(payload, keyThumbprint, tenant)
      if (isFault(claims)) return claims
      // A tenant that signs its own tokens must not sign those of another tenant, nor those of namespaces without a tenant.
      if (keys.tenants.ofNamespace(claims.namespace) !== tenant) return foreignKey
      if (trustDomain === undefined || claims.trustDomain === trustDomain) return claims
      return fault('binding', 'token is of another trust domain')
    },
  })
}

/** A verifier of tokens that somebody else defines, by the same rules: keys, algorithms, times, memory. */
export function createJwtVerifier<C extends TimedClaims>(options: JwtVerifierOptions<C>): Verifier<C> {
  return new JwtVerifier(options)
}

/**
 * Which tokens were verified before. Most tokens of a broker are verified once: keeping their claims would cost the collector more
 * than it spares. Two tokens may share a mark, rarely; then one is remembered a verification early.
 */
class MetTokens {
  readonly #marks = new Int32Array(MET_PLACES)

  /** Whether this token was met lately; it is from now on. */
  again({ fingerprint }: PresentedToken): boolean {
    const place = fingerprint & (MET_PLACES - 1)
    const met = this.#marks[place] === fingerprint
    this.#marks[place] = fingerprint
    return met
  }
}

/** Verified tokens by SHA-256 of the whole token: the strict reader leaves a signed content only one text. */
class KnownTokens<C> {
  readonly #claims = new Map<string, Remembered<C>>()
  /** Places of the fingerprints of those that are here: what is not marked needs no hash and no look. */
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
  /** What a header may say. */
  readonly #algorithms: ReadonlySet<string>
  readonly #met = new MetTokens()
  /**
   * From the second time on: what was verified lately, and what was before that. A whole half is forgotten at once, because a `Map` that
   * loses its first entry each time walks over all it lost.
   */
  #young = new KnownTokens<C>()
  #old = new KnownTokens<C>()
  /** When the young half becomes the old one, however little is in it; milliseconds since the epoch. */
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
    const shown = typeof token === 'string' ? new PresentedToken(token) : token
    if (audience !== this.#options.audience) return this.#verifyNew(shown.text, audience, null)
    return this.#recall(shown) ?? this.#verifyNew(shown.text, audience, shown)
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
    shown: PresentedToken | null,
  ): VerificationResult<C> | Promise<VerificationResult<C>> {
    const jws = parseJws(token)
    if (isFault(jws)) return jws
    if (!this.#algorithms.has(jws.header.alg)) return fault('signature', 'token algorithm is not accepted')
    if (!this.#options.takesType(jws.header.typ)) return fault('typ', 'token of this "typ" is not taken here')
    const { keys } = this.#options
    const key = keys.find(jws.header.kid)
    if (key !== null) return this.#verifyWith(key, jws, audience, shown)
    const asked = keys.refresh()
    if (asked === null) return unknownKey
    return asked.then(() => {
      const found = keys.find(jws.header.kid)
      return found === null ? unknownKey : this.#verifyWith(found, jws, audience, shown)
    })
  }

  #verifyWith(key: PublicKey, jws: Jws, audience: string | null, shown: PresentedToken | null): VerificationResult<C> {
    // The key decides what verifies it; what the header says may only agree.
    if (key.algorithm.name !== jws.header.alg) return fault('signature', 'token algorithm is not that of its key')
    if (!key.algorithm.verify(jws.input, key.key, jws.signature)) return fault('signature', 'token signature is wrong')
    const claims = this.#options.decode(jws, key.kid)
    if (isFault(claims)) return claims
    const bad = this.#judge(claims, audience)
    if (bad !== null) return bad
    if (shown !== null && this.#met.again(shown)) this.#remember(shown, claims)
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

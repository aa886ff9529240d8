import { type Clock, systemClock } from '@plat/core'
import {
  agentOf,
  createProofVerifier,
  createVerifier,
  isFault,
  type KeySource,
  memoryReplayStore,
  type ProofVerifier,
  type SessionClaims,
  type Verifier,
} from '@plat/tokens'
import { keysOf, TokenRefusedError, type Trust } from './keys.ts'

/** Tolerated clock skew, in seconds. */
const LEEWAY_SECONDS = 30

export interface TokenVerifierOptions {
  /** The broker's keys: `{ jwksURL: 'https://identity.example.com/.well-known/jwks.json' }` */
  readonly trust: Trust
  /** Required audience: the one that the gateway exchanges tokens for at this server. */
  readonly audience: string
  /** Exact `iss`; any when absent. */
  readonly issuer?: string
  readonly trustDomain?: string
  /**
   * When a DPoP proof is required. `bound`, the default: for tokens that are bound to a key. `all`: always. `none`: never, for servers
   * that only the gateway can reach, since it presents bound tokens of agents and does not have their keys.
   */
  readonly proof?: 'bound' | 'all' | 'none'
  /** Default: 30 seconds. */
  readonly leewaySeconds?: number
  readonly fetch?: typeof globalThis.fetch
  readonly clock?: Clock
}

/** The parts of a request that a verifier needs. */
export interface RequestFacts {
  readonly method: string
  /** The public URL of the request: not from the Host header, which callers choose. */
  readonly url: string
  /** As in `node:http`, in lower case; or a `Headers`. */
  readonly headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>
}

/**
 * Verifies session tokens of callers: signature, times, issuer, audience, the binding of names, and possession of the key of a bound
 * token. The broker's keys are fetched on first use and updated.
 */
export interface TokenVerifier {
  /**
   * Returns the caller of a request. Reads `Authorization` and `DPoP`.
   * @throws TokenRefusedError with the reason; respond with 401.
   */
  verifyRequest(request: RequestFacts): Promise<SessionClaims>
  /**
   * Returns the claims of a token without checking possession.
   * @throws TokenRefusedError with the reason.
   */
  verifyToken(token: string): Promise<SessionClaims>
  /** Stops updating the keys. */
  close(): void
}

/**
 * Creates a verifier for servers that receive plat's tokens. Create it once and reuse it.
 *
 * @example
 * const verifier = createTokenVerifier({
 *   trust: { jwksURL: 'https://identity.example.com/.well-known/jwks.json' }, audience: 'notes', proof: 'none',
 * })
 * const { namespace, agent, user } = await verifier.verifyRequest({ method, url, headers })
 */
export function createTokenVerifier(options: TokenVerifierOptions): TokenVerifier {
  return new SessionTokenVerifier(options)
}

const SCHEME = /^(bearer|dpop) +([^ ]+)$/i

class SessionTokenVerifier implements TokenVerifier {
  readonly #keys: KeySource
  readonly #tokens: Verifier
  readonly #proofs: ProofVerifier
  readonly #proof: NonNullable<TokenVerifierOptions['proof']>
  #started: Promise<void> | null = null

  constructor(options: TokenVerifierOptions) {
    const { trust, audience, issuer, trustDomain, leewaySeconds = LEEWAY_SECONDS } = options
    const { proof = 'bound', fetch = globalThis.fetch, clock = systemClock } = options
    this.#keys = keysOf(trust, fetch, clock)
    this.#proof = proof
    this.#proofs = createProofVerifier({ clock, replays: memoryReplayStore(clock) })
    this.#tokens = createVerifier({
      keys: this.#keys,
      audience,
      leewaySeconds,
      clock,
      ...(issuer !== undefined && { issuer }),
      ...(trustDomain !== undefined && { trustDomain }),
    })
  }

  async verifyToken(token: string): Promise<SessionClaims> {
    this.#started ??= this.#keys.start()
    await this.#started
    const claims = await this.#tokens.verify(token)
    if (isFault(claims)) throw new TokenRefusedError(claims.reason, claims.message)
    return claims
  }

  async verifyRequest(request: RequestFacts): Promise<SessionClaims> {
    const [header = '', another] = valuesOf(request, 'authorization')
    if (another !== undefined) throw new TokenRefusedError('malformed', 'the header Authorization must occur once')
    if (header === '') throw new TokenRefusedError('missing', 'a session token is required')
    const [, scheme = '', token = ''] = SCHEME.exec(header) ?? []
    if (token === '') throw new TokenRefusedError('malformed', 'send one token as "Authorization: Bearer <token>"')
    const claims = await this.verifyToken(token)
    if (this.#proof === 'none') return claims
    if (claims.jkt === null && this.#proof === 'bound') return claims
    await this.#prove(request, { token, claims, isProven: scheme.toLowerCase() === 'dpop' })
    return claims
  }

  async #prove(
    request: RequestFacts,
    { token, claims, isProven }: { readonly token: string; readonly claims: SessionClaims; readonly isProven: boolean },
  ): Promise<void> {
    const { jkt } = claims
    if (jkt === null)
      throw new TokenRefusedError('binding', 'the token is not bound to a key, which this server requires')
    if (!isProven)
      throw new TokenRefusedError(
        'binding',
        'the token is bound to a key and came without a proof; for a server that only the gateway can reach set proof to "none"',
      )
    const proof = this.#proofs.check({
      headers: valuesOf(request, 'dpop'),
      method: request.method.toUpperCase(),
      url: request.url,
      accessToken: token,
      ath: 'required',
    })
    if (proof.kind === 'proofFault') throw new TokenRefusedError('binding', proof.message)
    if (proof.jkt !== jkt)
      throw new TokenRefusedError('binding', 'the proof is by another key than the token is bound to')
    const replayed = await this.#proofs.use(proof, agentOf(claims))
    if (replayed !== null) throw new TokenRefusedError('binding', replayed.message)
  }

  close(): void {
    this.#keys.close()
  }
}

/** Every value of a header: one that came twice is none. */
function valuesOf({ headers }: Pick<RequestFacts, 'headers'>, name: string): readonly string[] {
  if (headers instanceof Headers) {
    const value = headers.get(name)
    return value === null ? [] : [value]
  }
  const value = headers[name]
  return value === undefined ? [] : typeof value === 'string' ? [value] : value
}

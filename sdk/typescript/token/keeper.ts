import { Backoff, type Clock, type Ids } from '@plat/core'
import { decodeClaims, isFault, parseJws, type SessionClaims } from '@plat/tokens'
import { orAbort, sleep } from '../clock.ts'
import { asUnavailable } from './ask.ts'
import type { Prover } from './prover.ts'
import { type IssuedToken, type TokenSource, TokenUnavailableError } from './source.ts'

/** Fraction of its lifetime after which a token is renewed. */
const FRESH_SHARE = 2 / 3
/** Minimum remaining lifetime for sending a token, in milliseconds: it could expire in transit. */
const LAST_MS = 5_000
/** Attempts for one token, and the pause after the first, in milliseconds; each further pause is twice as long. */
const TRIES = 4
const FIRST_PAUSE_MS = 250
/** Longest requested pause that a waiting call retries after, in milliseconds. */
const LONGEST_PAUSE_MS = 30_000
/** After these attempts a token that is still valid stays in use, and the next attempt is at least this much later, in milliseconds. */
const NEXT_ROUND_MS = 5_000
/** Minimum age of a refused token for replacing it, in milliseconds. Otherwise a gateway that trusts another broker would cause a mint per call. */
const LEAST_AGE_MS = 5_000

/** The token of calls. */
export interface LiveToken {
  readonly text: string
  readonly claims: SessionClaims
  /** Milliseconds since the epoch. */
  readonly since: number
  readonly freshUntil: number
  readonly usableUntil: number
}

export interface KeeperOptions {
  readonly source: TokenSource
  readonly clock: Clock
  readonly ids: Pick<Ids, 'random'>
  /** Binds a token to the prover's key. */
  readonly bind: (token: string, prover: Prover, signal: AbortSignal) => Promise<string>
}

/** Renews the token of a session before it expires, with one request at a time. Never stores it outside of memory. */
export class TokenKeeper {
  readonly #options: KeeperOptions
  readonly #backoff: Backoff
  readonly #closed = new AbortController()
  #live: LiveToken | null = null
  #renewing: Promise<LiveToken> | null = null
  #notBefore = 0
  #prover: Prover | null
  #env: Readonly<Record<string, string>> = {}

  constructor(options: KeeperOptions, prover: Prover | null) {
    this.#options = options
    this.#backoff = new Backoff({ firstMs: FIRST_PAUSE_MS, maxMs: LONGEST_PAUSE_MS, ids: options.ids })
    this.#prover = prover
  }

  get prover(): Prover | null {
    return this.#prover
  }

  get env(): Readonly<Record<string, string>> {
    return this.#env
  }

  /** Claims of the last token, also if it has expired. */
  get claims(): SessionClaims | null {
    return this.#live?.claims ?? null
  }

  /** Returns a valid token. After two thirds of its lifetime it is renewed in the background. */
  async current(signal?: AbortSignal | null): Promise<LiveToken> {
    const live = this.#live
    const now = this.#options.clock.now()
    if (live === null || now >= live.usableUntil) return orAbort(this.#renew(), signal)
    if (now >= live.freshUntil && now >= this.#notBefore) this.#renew().catch(ignore)
    return live
  }

  /** Returns another token than the refused one, or the same if there is no other. */
  async instead(refused: LiveToken, signal?: AbortSignal | null): Promise<LiveToken> {
    if (this.#live !== null && this.#live !== refused) return this.#live
    const now = this.#options.clock.now()
    if (now < refused.since + LEAST_AGE_MS && now < refused.freshUntil) return refused
    return orAbort(this.#renew(), signal).catch((error: unknown) => {
      if (signal?.aborted) throw error
      return refused
    })
  }

  /** A keeper of other tokens for the same key. */
  withSource(source: TokenSource): TokenKeeper {
    return new TokenKeeper({ ...this.#options, source }, this.#prover)
  }

  /** From now on every token is bound to the prover's key. */
  async bindTo(prover: Prover): Promise<void> {
    if (this.#prover !== null) throw new TokenUnavailableError('the session already has a key')
    this.#prover = prover
    try {
      const { text, claims } = await this.current()
      if (claims.jkt === null) this.#live = await this.#accept({ token: text })
    } catch (error) {
      this.#prover = null
      throw error
    }
  }

  close(): void {
    this.#live = null
    this.#closed.abort(new TokenUnavailableError('the session is closed'))
  }

  #renew(): Promise<LiveToken> {
    this.#renewing ??= this.#issue().finally(() => {
      this.#renewing = null
    })
    return this.#renewing
  }

  async #issue(): Promise<LiveToken> {
    const { source, clock } = this.#options
    const { signal } = this.#closed
    for (let tries = 1; ; tries++) {
      try {
        signal.throwIfAborted()
        const live = await this.#accept(await source.issue({ jkt: this.#prover?.jkt ?? null, signal }))
        signal.throwIfAborted()
        this.#live = live
        return live
      } catch (error) {
        signal.throwIfAborted()
        const failed = asUnavailable(error)
        const retryAfterMs = failed.retryAfterMs ?? 0
        if (!failed.retryable || tries === TRIES || retryAfterMs > LONGEST_PAUSE_MS) {
          this.#notBefore = clock.now() + Math.max(NEXT_ROUND_MS, retryAfterMs)
          throw new TokenUnavailableError(`no session token of ${source.name}: ${failed.message}`, {
            retryable: failed.retryable,
            retryAfterMs: failed.retryAfterMs,
            cause: failed,
          })
        }
        await sleep(clock, Math.max(this.#backoff.pauseMs(tries - 1), retryAfterMs), signal)
      }
    }
  }

  async #accept({ token, env }: IssuedToken): Promise<LiveToken> {
    const now = this.#options.clock.now()
    const claims = readClaims(token)
    const endsAt = claims.expiresAt * 1000
    if (now >= endsAt)
      throw new TokenUnavailableError('the token has expired by the clock of this machine', { retryable: true })
    if (env !== undefined) this.#env = env
    const prover = this.#prover
    if (claims.jkt === null && prover !== null) {
      const bound = await this.#options.bind(token, prover, this.#closed.signal)
      return liveToken(bound, readClaims(bound), now)
    }
    if (claims.jkt !== (prover?.jkt ?? null)) {
      throw new TokenUnavailableError('the token is bound to another key: give the private key as dpop.privateKey')
    }
    return liveToken(token, claims, now)
  }
}

function liveToken(text: string, claims: SessionClaims, now: number): LiveToken {
  // With a clock that is behind, a token would seem to last longer than it was issued for.
  const left = Math.min(claims.expiresAt * 1000 - now, (claims.expiresAt - claims.issuedAt) * 1000)
  return {
    text,
    claims,
    since: now,
    freshUntil: now + left * FRESH_SHARE,
    usableUntil: now + left - Math.min(LAST_MS, left / 10),
  }
}

/**
 * Returns the claims of a session token: user, groups, taints, scopes, expiry. Does not verify it: use it for the agent's token, or
 * one that is already verified. `act` has plat's order, the reverse of RFC 8693: `user` is the innermost, `actors` are the agents
 * that delegated, nearest first.
 *
 * @throws TokenUnavailableError if it is not a session token.
 * @example
 * const { user, groups, inheritedTaints } = readClaims(token)
 */
export function readClaims(token: string): SessionClaims {
  const jws = parseJws(token)
  const claims = isFault(jws) ? jws : decodeClaims(jws.payload)
  if (isFault(claims)) throw new TokenUnavailableError(`not a session token: ${claims.message}`)
  return claims
}

function ignore(): void {}

import type { Clock } from '@plat/core'
import type { Credential } from '../../call/index.ts'
import type { Grant } from './endpoint.ts'

/** Assumed lifetime of a token without `expires_in`, in seconds. */
const UNTOLD_LIFE_SECONDS = 300
/** Delay before the next request after a failure, in milliseconds, so that calls do not overload a broken endpoint. */
const ASK_AGAIN_MS = 1_000
/** Minimum age of a token that is replaced because a server refused it, in milliseconds: its successor would be refused as well. */
const LEAST_AGE_MS = 10_000

export interface TokenOptions {
  readonly clock: Clock
  /** A token is not used this long before it expires, in milliseconds. */
  readonly marginMs: number
  /** Fetches the next token. Returns a text with the problem on failure. Never rejects. */
  readonly ask: () => Promise<Grant | string>
}

/** A token shared by calls, one of which fetches it. */
export class Token {
  readonly #options: TokenOptions
  #held: { readonly credential: Credential; readonly askedAt: number; readonly usableUntil: number } | null = null
  #asking: Promise<Credential | string> | null = null
  #refused: { readonly why: string; readonly until: number } | null = null

  constructor(options: TokenOptions) {
    this.#options = options
  }

  /** Synchronous if the token is cached or just failed. Returns a text with the problem on failure. */
  get(): Credential | string | Promise<Credential | string> {
    const now = this.#options.clock.now()
    if (this.#held !== null && now < this.#held.usableUntil) return this.#held.credential
    if (this.#asking !== null) return this.#asking
    if (this.#refused !== null && now < this.#refused.until) return this.#refused.why
    this.#asking = this.#renew().finally(() => {
      this.#asking = null
    })
    return this.#asking
  }

  /** Returns another credential after a server refused this one, or null if there is none. */
  async renewed(credential: Credential): Promise<Credential | null> {
    const held = this.#held
    if (held?.credential === credential) {
      if (this.#options.clock.now() < held.askedAt + LEAST_AGE_MS) return null
      this.#held = null
    }
    const next = await this.get()
    return typeof next === 'string' || next === credential ? null : next
  }

  async #renew(): Promise<Credential | string> {
    const { clock, ask, marginMs } = this.#options
    const askedAt = clock.now()
    const grant = await ask()
    if (typeof grant === 'string') {
      this.#refused = { why: grant, until: clock.now() + ASK_AGAIN_MS }
      return grant
    }
    const { credential, expiresInSeconds } = grant
    const usableUntil = askedAt + (expiresInSeconds ?? UNTOLD_LIFE_SECONDS) * 1000 - marginMs
    this.#held = { credential, askedAt, usableUntil }
    return credential
  }
}

import type { Clock } from '@plat/core'
import type { Credential } from '../../call/index.ts'
import type { Grant } from './endpoint.ts'

/** A token whose life the endpoint does not tell is taken to live this long, in seconds. */
const UNTOLD_LIFE_SECONDS = 300
/** After a refusal nobody asks again for this long, in milliseconds: a broken endpoint is not asked once a call. */
const ASK_AGAIN_MS = 1_000
/** A token younger than this, in milliseconds, is not replaced because a server refuses it: the next one would be refused as well. */
const LEAST_AGE_MS = 10_000

export interface TokenOptions {
  readonly clock: Clock
  /** Before it expires, a token is not used any more; in milliseconds. */
  readonly marginMs: number
  /** Fetches the next one; a string says why there is none. Never rejects. */
  readonly ask: () => Promise<Grant | string>
}

/** One token that many calls use and one of them fetches. */
export class Token {
  readonly #options: TokenOptions
  #held: { readonly credential: Credential; readonly askedAt: number; readonly usableUntil: number } | null = null
  #asking: Promise<Credential | string> | null = null
  #refused: { readonly why: string; readonly until: number } | null = null

  constructor(options: TokenOptions) {
    this.#options = options
  }

  /** A plain value when the token is in hand, or was refused a moment ago; a string says why there is none. */
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

  /** A server has refused `credential`. Null: there is no other to be had. */
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

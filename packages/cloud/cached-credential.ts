import type { Clock } from '@plat/core'
import type { Log } from '@plat/process'
import type { Expiring } from './cloud.ts'

/** Time before the expiration at which a credential is renewed, in milliseconds. Metadata services return a new one from then on. */
const AHEAD_MS = 5 * 60_000
/** A credential is not used this close to its expiration, in milliseconds: it must be valid on arrival. */
const MARGIN_MS = 10_000
/** Backoff after failures, in milliseconds. */
const FIRST_PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 60_000
/** Minimum interval between requests, for credentials with a short lifetime, in milliseconds. */
const LEAST_PAUSE_MS = 5_000

export interface CachedCredentialOptions<T> {
  /** Name in logs. */
  readonly name: string
  readonly clock: Clock
  readonly log: Log
  /** Throws errors that contain no secret. */
  lend(): Promise<Expiring<T>>
}

/**
 * A credential with an expiration, renewed ahead of time by one request at a time. Calls use the current one and never wait. The last
 * one is used until it expires, whatever the result of the next request.
 */
export class CachedCredential<T> {
  readonly #options: CachedCredentialOptions<T>
  #lent: Expiring<T> | null = null
  #pauseMs = FIRST_PAUSE_MS
  #cancel: () => void = () => {}
  #first: Promise<void> | null = null
  #closed = false

  constructor(options: CachedCredentialOptions<T>) {
    this.#options = options
  }

  /** Null if there is none or it has expired. */
  get current(): T | null {
    const lent = this.#lent
    if (lent === null) return null
    if (lent.expiresAt !== null && this.#options.clock.now() >= lent.expiresAt - MARGIN_MS) return null
    return lent.value
  }

  /** Starts once; resolves after the first request, whatever its result. */
  start(): Promise<void> {
    this.#first ??= this.#renew()
    return this.#first
  }

  close(): void {
    this.#closed = true
    this.#cancel()
    this.#lent = null
  }

  async #renew(): Promise<void> {
    const { name, log, lend } = this.#options
    let pauseMs: number | null
    try {
      const lent = await lend()
      if (this.#closed) return
      this.#lent = lent
      this.#pauseMs = FIRST_PAUSE_MS
      pauseMs = this.#until(lent)
    } catch (error) {
      if (this.#closed) return
      log.error({ source: name, error: error instanceof Error ? error.message : 'failed' }, 'no new cloud credential')
      pauseMs = this.#pauseMs
      this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS)
    }
    if (pauseMs !== null) this.#cancel = this.#options.clock.after(pauseMs, () => void this.#renew())
  }

  /** Milliseconds until the next request, or null if none is needed. */
  #until({ expiresAt }: Expiring<T>): number | null {
    if (expiresAt === null) return null
    const left = expiresAt - this.#options.clock.now()
    return Math.max(LEAST_PAUSE_MS, left > 2 * AHEAD_MS ? left - AHEAD_MS : left / 2)
  }
}

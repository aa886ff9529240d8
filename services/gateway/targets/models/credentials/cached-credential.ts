import type { Clock } from '@plat/core'
import type { Log } from '@plat/process'
import type { Lent } from './cloud.ts'

/** How long before its end a credential is asked for anew, in milliseconds. Metadata services give another one from then on. */
const AHEAD_MS = 5 * 60_000
/** No credential is shown in its last moments, in milliseconds: it has to be one when it arrives. */
const MARGIN_MS = 10_000
/** Pauses after a failed request, in milliseconds. */
const FIRST_PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 60_000
/** A credential that is short-lived by nature is asked for no more often, in milliseconds. */
const LEAST_PAUSE_MS = 5_000

export interface CachedCredentialOptions<T> {
  /** How logs name it. */
  readonly name: string
  readonly clock: Clock
  readonly log: Log
  /** Throws what names the reason and no secret. */
  lend(): Promise<Lent<T>>
}

/**
 * A credential that runs out, fetched before it does. Calls take what is there and never wait; there is one request at a time, however
 * many calls there are. What was fetched last is shown until it has run out, whatever becomes of the next request.
 */
export class CachedCredential<T> {
  readonly #options: CachedCredentialOptions<T>
  #lent: Lent<T> | null = null
  #pauseMs = FIRST_PAUSE_MS
  #cancel: () => void = () => {}
  #first: Promise<void> | null = null
  #closed = false

  constructor(options: CachedCredentialOptions<T>) {
    this.#options = options
  }

  /** Null: there is none, or it has run out. */
  get current(): T | null {
    const lent = this.#lent
    if (lent === null) return null
    if (lent.expiresAt !== null && this.#options.clock.now() >= lent.expiresAt - MARGIN_MS) return null
    return lent.value
  }

  /** Begins once; resolves when the first request is over, whatever came of it. */
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

  /** Milliseconds until the next request; null: there is none. */
  #until({ expiresAt }: Lent<T>): number | null {
    if (expiresAt === null) return null
    const left = expiresAt - this.#options.clock.now()
    return Math.max(LEAST_PAUSE_MS, left > 2 * AHEAD_MS ? left - AHEAD_MS : left / 2)
  }
}

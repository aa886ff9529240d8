import { readFile } from 'node:fs/promises'
import type { Clock } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Log } from '@plat/process'

/** Maximum age of a document before it is fetched again, in milliseconds. */
const FRESH_MS = 5 * 60 * 1000
/** While its origin does not respond, a document is used for this long after its last successful fetch, in milliseconds. */
const STALE_MS = 60 * 60 * 1000
/** Minimum time between fetches for something unknown, in milliseconds (docs/spec/broker-api.md, "Limits": JWKS refresh on unknown `kid`). */
const MIN_FETCH_INTERVAL_MS = 10_000
/** Largest document, in bytes. */
const MAX_BYTES = 1024 * 1024
/** Deadline of one fetch, in milliseconds. */
const FETCH_TIMEOUT_MS = 5_000

export interface TrustParts {
  readonly dialer: Dialer
  readonly clock: Clock
  readonly log: Log
}

/** A document with trust anchors, in a file or at an http or https URL: read on demand and cached. */
export class TrustDocument<T> {
  readonly #location: string
  readonly #parse: (bytes: Uint8Array) => T
  readonly #parts: TrustParts
  #value: T | null = null
  #fetchedAt = Number.NEGATIVE_INFINITY
  #answeredAt = Number.NEGATIVE_INFINITY
  #asking: Promise<void> | null = null

  /** `parse` throws on what is not such a document. */
  constructor(location: string, parse: (bytes: Uint8Array) => T, parts: TrustParts) {
    this.#location = location
    this.#parse = parse
    this.#parts = parts
  }

  /** Returns the document; null while it is unavailable. */
  async read(): Promise<T | null> {
    if (this.#age() >= FRESH_MS) await this.#ask()
    return this.#age() < STALE_MS ? this.#value : null
  }

  /** Returns the document, fetched again unless that was done moments ago, because the cached one lacks something. */
  async readAgain(): Promise<T | null> {
    await this.#ask()
    return this.#age() < STALE_MS ? this.#value : null
  }

  #age(): number {
    return this.#parts.clock.monotonic() - this.#answeredAt
  }

  /** One fetch at a time; concurrent callers share it. Never rejects. */
  async #ask(): Promise<void> {
    if (this.#asking === null) {
      const now = this.#parts.clock.monotonic()
      if (now - this.#fetchedAt < MIN_FETCH_INTERVAL_MS) return
      this.#fetchedAt = now
      this.#asking = this.#load()
        .catch((error: unknown) => {
          this.#parts.log.warn({ location: this.#location, error: String(error) }, 'trust anchors could not be read')
        })
        .finally(() => {
          this.#asking = null
        })
    }
    await this.#asking
  }

  async #load(): Promise<void> {
    this.#value = this.#parse(await this.#bytes())
    this.#answeredAt = this.#parts.clock.monotonic()
  }

  async #bytes(): Promise<Uint8Array> {
    if (!/^https?:\/\//.test(this.#location)) return readFile(this.#location)
    const limits = { maxBytes: MAX_BYTES, timeoutMs: FETCH_TIMEOUT_MS }
    const { status, bytes } = await this.#parts.dialer.fetchBytes(this.#location, 'jwks', limits)
    if (status !== 200) throw new Error(`status ${status}`)
    return bytes
  }
}

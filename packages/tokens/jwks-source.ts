import { type Clock, parseStrict } from '@plat/core'
import { type AlgorithmName, type PublicKey, readPublicJwk } from '@plat/keys'
import { isObject } from './jws.ts'
import { KeySet, type KeySource } from './keyset.ts'
import { type DocumentKey, type KeyTenants, readKeyTenants } from './tenants/key-tenants.ts'

/** docs/spec/broker-api.md, "Limits": an unknown `kid` asks at most this often; a failed refresh is tried again as often. Milliseconds. */
const ASK_AT_MOST_EVERY_MS = 10_000
/** Largest key document, in bytes. */
const MAX_JWKS_BYTES = 1024 * 1024
/** Keys in one document, those of other uses included. */
const MAX_KEYS = 1024
/** Deadline of one fetch, in milliseconds. */
const FETCH_TIMEOUT_MS = 5_000

/** What the guarded dialer offers for small documents. */
export interface KeyFetcher {
  fetchBytes(
    url: string,
    purpose: 'jwks',
    limits: { readonly maxBytes: number; readonly timeoutMs: number; readonly caPEM?: string },
  ): Promise<{ readonly status: number; readonly bytes: Uint8Array }>
}

/** What a key source tells of its fetches. */
export interface KeyLog {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
}

export interface JwksSourceOptions {
  readonly url: string
  /** Finds the address anew before each fetch where only the issuer's (`url`) is known: discovery. */
  readonly locate?: () => Promise<string>
  /** CA certificates (PEM) that are trusted for this address, beside the system's. */
  readonly caPEM?: string
  readonly refreshSeconds: number
  readonly dialer: KeyFetcher
  readonly clock: Clock
  readonly log: KeyLog
  /** Keys of others are passed over. Default: EdDSA alone. */
  readonly algorithms?: ReadonlySet<AlgorithmName>
}

/**
 * Keys of a JWKS address (RFC 7517): refreshed on time, and at once for an unknown `kid`. Keys of the algorithms that are enabled
 * are taken, others ignored.
 * A refresh that fails keeps the keys; a key that a good document no longer holds is gone.
 */
export function jwksSource(options: JwksSourceOptions): KeySource {
  return new JwksSource(options)
}

class JwksSource implements KeySource {
  readonly #options: JwksSourceOptions
  readonly #set: KeySet
  #asking: Promise<void> | null = null
  #askedAt = Number.NEGATIVE_INFINITY
  #answeredAt = Number.NEGATIVE_INFINITY
  #stop: () => void = () => {}

  constructor(options: JwksSourceOptions) {
    this.#options = options
    this.#set = new KeySet([], options.algorithms)
  }

  get revision(): number {
    return this.#set.revision
  }

  get size(): number {
    return this.#set.size
  }

  get tenants(): KeyTenants {
    return this.#set.tenants
  }

  find(kid: string | null): PublicKey | null {
    return this.#set.find(kid)
  }

  refresh(): Promise<void> | null {
    if (this.#asking !== null) return this.#asking
    if (this.#options.clock.monotonic() - this.#askedAt < ASK_AT_MOST_EVERY_MS) return null
    return this.#ask()
  }

  /** Resolves after the first answer, good or bad: a broker that starts later is found by the next refresh. */
  async start(): Promise<void> {
    const { clock, refreshSeconds } = this.#options
    this.#stop = clock.every(ASK_AT_MOST_EVERY_MS, () => {
      if (clock.monotonic() - this.#answeredAt >= refreshSeconds * 1000) this.refresh()
    })
    await this.#ask()
  }

  close(): void {
    this.#stop()
  }

  #ask(): Promise<void> {
    const { url, clock, log } = this.#options
    this.#askedAt = clock.monotonic()
    this.#asking = this.#load()
      .catch((error: unknown) => log.warn({ url, error: String(error) }, 'keys not refreshed, the old keys stay'))
      .finally(() => {
        this.#asking = null
      })
    return this.#asking
  }

  async #load(): Promise<void> {
    const { url, locate, caPEM, clock, dialer, log } = this.#options
    const limits = { maxBytes: MAX_JWKS_BYTES, timeoutMs: FETCH_TIMEOUT_MS }
    const address = locate === undefined ? url : await locate()
    const answer = await dialer.fetchBytes(address, 'jwks', caPEM === undefined ? limits : { ...limits, caPEM })
    if (answer.status !== 200) throw new Error(`status ${answer.status}`)
    const { entries, tenants } = readJwks(answer.bytes)
    const changed = this.#set.replace(entries, tenants)
    this.#answeredAt = clock.monotonic()
    if (changed) log.info({ url, keys: this.#set.size }, 'trusted keys changed')
    if (this.#set.size === 0) log.warn({ url }, 'the key document holds no key that can verify sessions')
  }
}

/** A key document (RFC 7517) as a verifier uses it. */
export interface KeyDocument {
  /** The keys of known types under the `kid` that the document gives them (their thumbprint when it gives none). */
  readonly entries: readonly (readonly [kid: string, key: PublicKey])[]
  readonly tenants: KeyTenants
}

/** Reads a key document. Throws when it is no JWK set, or states tenants that contradict each other. */
export function readJwks(bytes: Uint8Array): KeyDocument {
  const document = parseStrict(bytes)
  if (!isObject(document) || !Array.isArray(document.keys)) throw new Error('no JWK set')
  if (document.keys.length > MAX_KEYS) throw new Error(`more than ${MAX_KEYS} keys`)
  const entries: (readonly [string, PublicKey])[] = []
  const keys: DocumentKey[] = []
  for (const jwk of document.keys) {
    const key = readPublicJwk(jwk)
    if (key === null || !isObject(jwk)) continue
    entries.push([typeof jwk.kid === 'string' ? jwk.kid : key.kid, key])
    keys.push({ thumbprint: key.kid, jwk })
  }
  return { entries, tenants: readKeyTenants(document, keys) }
}

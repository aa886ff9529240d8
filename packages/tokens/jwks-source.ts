import { type Clock, isObject, parseStrict } from '@plat/core'
import { type AlgorithmName, type PublicKey, readPublicJwk } from '@plat/keys'
import { KeySet, type KeySource } from './keyset.ts'
import { type DocumentKey, type KeyTenants, readKeyTenants } from './tenants/key-tenants.ts'

/** docs/spec/broker-api.md, "Limits": minimum time between refreshes for unknown `kid`s, and between retries. Milliseconds. */
const MIN_FETCH_INTERVAL_MS = 10_000
/** Maximum size of a key document in bytes. */
const MAX_JWKS_BYTES = 1024 * 1024
/** Maximum number of keys in a document, including those of other uses. */
const MAX_KEYS = 1024
/** Deadline of one fetch, in milliseconds. */
const FETCH_TIMEOUT_MS = 5_000

/** Fetches small documents through the guarded dialer. */
export interface KeyFetcher {
  fetchBytes(
    url: string,
    purpose: 'jwks',
    limits: { readonly maxBytes: number; readonly timeoutMs: number; readonly caPEM?: string },
  ): Promise<{ readonly status: number; readonly bytes: Uint8Array }>
}

export interface KeyLog {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
}

export interface JwksSourceOptions {
  readonly url: string
  /** Finds the URL before each fetch when only the issuer (`url`) is known: discovery. */
  readonly locate?: () => Promise<string>
  /** CA certificates (PEM) trusted for this URL in addition to the system's. */
  readonly caPEM?: string
  readonly refreshSeconds: number
  readonly dialer: KeyFetcher
  readonly clock: Clock
  readonly log: KeyLog
  /** Keys of other algorithms are ignored. Default: EdDSA only. */
  readonly algorithms?: ReadonlySet<AlgorithmName>
}

/**
 * Keys of a JWKS URL (RFC 7517): refreshed periodically, and at once for an unknown `kid`. Keys of other algorithms than the enabled ones are
 * ignored. A failed refresh keeps the keys; a key missing in a valid document is removed.
 */
export function jwksSource(options: JwksSourceOptions): KeySource {
  return new JwksSource(options)
}

class JwksSource implements KeySource {
  readonly #options: JwksSourceOptions
  readonly #set: KeySet
  #asking: Promise<void> | null = null
  #fetchedAt = Number.NEGATIVE_INFINITY
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
    if (this.#options.clock.monotonic() - this.#fetchedAt < MIN_FETCH_INTERVAL_MS) return null
    return this.#ask()
  }

  /** Resolves after the first fetch, successful or not: a broker that starts later is found by the next refresh. */
  async start(): Promise<void> {
    const { clock, refreshSeconds } = this.#options
    this.#stop = clock.every(MIN_FETCH_INTERVAL_MS, () => {
      if (clock.monotonic() - this.#answeredAt >= refreshSeconds * 1000) this.refresh()
    })
    await this.#ask()
  }

  close(): void {
    this.#stop()
  }

  #ask(): Promise<void> {
    const { url, clock, log } = this.#options
    this.#fetchedAt = clock.monotonic()
    this.#asking = this.#load()
      .catch((error: unknown) =>
        log.warn({ url, error: String(error) }, 'keys could not be refreshed, the old keys stay in use'),
      )
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

/** A parsed key document (RFC 7517). */
export interface KeyDocument {
  /** Keys of known types with their `kid` (the thumbprint if the document has none). */
  readonly entries: readonly (readonly [kid: string, key: PublicKey])[]
  readonly tenants: KeyTenants
}

/** Parses a key document. Throws when it is not a JWK set, or contradicts itself about tenants. */
export function readJwks(bytes: Uint8Array): KeyDocument {
  const document = parseStrict(bytes)
  if (!isObject(document) || !Array.isArray(document.keys)) throw new Error('not a JWK set')
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

import { createHash } from 'node:crypto'
import { lookup as systemLookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { type Clock, systemClock } from '@plat/core'
import type { Log } from '@plat/process'
import { buildConnector, Pool } from 'undici'
import { type AddressCheck, createAddressCheck } from './addresses.ts'
import { BlockedAddress } from './errors.ts'
import { type Fetched, type FetchOptions, fetchBytes } from './fetch-bytes.ts'
import { addressPolicies, type Purpose } from './purpose.ts'
import { rootsWith } from './roots.ts'

/** Resolves a name to all of its addresses. */
export type Lookup = (hostname: string) => Promise<readonly { readonly address: string; readonly family: number }[]>

export interface DialerOptions {
  /** Exceptions from the address policies. */
  readonly allowedCIDRs?: readonly string[]
  readonly lookup?: Lookup
  readonly clock?: Clock
  readonly log: Log
}

export interface PoolOptions {
  /** CA certificates (PEM) that are trusted beside the system's. */
  readonly caPEM?: string
  readonly clientCert?: { readonly certPEM: string; readonly keyPEM: string }
  /** Milliseconds until the head of an answer must have come. A request may set its own. */
  readonly headersTimeoutMs?: number
}

/** The one way out of the process: each connection resolves once, checks every address, and goes to a checked one. */
export interface Dialer {
  /**
   * The pool of an origin. Ask for it with each request: pools that were not used for long make room for others.
   * Redirects are never followed. Throws on what is no http or https URL.
   */
  pool(origin: URL | string, purpose: Purpose, options?: PoolOptions): Pool
  /** A small GET, such as for a key set, or a small POST. Rejects like a request of a pool, and with `ResponseTooLarge`. */
  fetchBytes(url: URL | string, purpose: Purpose, options: FetchOptions & PoolOptions): Promise<Fetched>
  /** Cuts every connection. */
  close(): Promise<void>
}

/** Pools that are kept; beyond it the one unused for longest is closed after its requests. */
const MAX_POOLS = 512
/** Connections to one origin for one purpose. */
const MAX_CONNECTIONS = 256
/** Milliseconds until a connection must stand, TLS included. */
const CONNECT_MS = 10_000
/** Milliseconds that an idle connection is kept. */
const KEEP_ALIVE_MS = 30_000
/** Milliseconds that a server's own keep-alive hint can ask for at most. */
const KEEP_ALIVE_MAX_MS = 60_000
/** Milliseconds until an answer's head must have come, unless the caller says otherwise. */
const HEADERS_MS = 60_000
/** Milliseconds without a byte in an answer's body, unless the request says otherwise. */
const BODY_IDLE_MS = 300_000
/** Bytes of an answer's head. */
const MAX_HEADER_BYTES = 32 * 1024

interface Kept {
  readonly pool: Pool
  usedAt: number
}

/** Builds the dialer. Throws when an allowed range is malformed. */
export function createDialer(options: DialerOptions): Dialer {
  return new GuardedDialer(options)
}

class GuardedDialer implements Dialer {
  readonly #check: AddressCheck
  readonly #lookup: Lookup
  readonly #clock: Clock
  readonly #log: Log
  readonly #pools = new Map<string, Kept>()
  #uses = 0
  #closed = false

  constructor(options: DialerOptions) {
    this.#check = createAddressCheck(options.allowedCIDRs ?? [])
    this.#lookup = options.lookup ?? ((hostname) => systemLookup(hostname, { all: true, verbatim: true }))
    this.#clock = options.clock ?? systemClock
    this.#log = options.log
  }

  pool(origin: URL | string, purpose: Purpose, options?: PoolOptions): Pool {
    const text = typeof origin === 'string' ? origin : origin.origin
    const key = options === undefined ? `${purpose} ${text}` : `${purpose} ${text} ${keyOf(options)}`
    const kept = this.#pools.get(key)
    if (kept !== undefined) {
      kept.usedAt = ++this.#uses
      return kept.pool
    }
    const exact = httpOrigin(text)
    return exact === text ? this.#open(key, exact, purpose, options ?? {}) : this.pool(exact, purpose, options)
  }

  fetchBytes(url: URL | string, purpose: Purpose, options: FetchOptions & PoolOptions): Promise<Fetched> {
    const target = new URL(url)
    const { caPEM, clientCert } = options
    const pool = this.pool(target, purpose, { ...(caPEM && { caPEM }), ...(clientCert && { clientCert }) })
    return fetchBytes(pool, target, options, this.#clock)
  }

  async close(): Promise<void> {
    this.#closed = true
    const pools = [...this.#pools.values()]
    this.#pools.clear()
    await Promise.all(pools.map(({ pool }) => pool.destroy()))
  }

  #open(key: string, origin: string, purpose: Purpose, options: PoolOptions): Pool {
    if (this.#closed) throw new Error('The dialer is closed.')
    if (this.#pools.size >= MAX_POOLS) this.#makeRoom()
    const pool = new Pool(origin, {
      connections: MAX_CONNECTIONS,
      pipelining: 1,
      allowH2: false,
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: options.headersTimeoutMs ?? HEADERS_MS,
      bodyTimeout: BODY_IDLE_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MAX_MS,
      connect: this.#connector(purpose, options),
    })
    this.#pools.set(key, { pool, usedAt: ++this.#uses })
    return pool
  }

  #makeRoom(): void {
    let oldest: [string, Kept] | null = null
    for (const entry of this.#pools) if (oldest === null || entry[1].usedAt < oldest[1].usedAt) oldest = entry
    if (oldest === null) return
    this.#pools.delete(oldest[0])
    oldest[1].pool.close().catch((error: unknown) => this.#log.warn({ err: error }, 'A pool did not close.'))
  }

  /** Sockets ask `lookup` for names only, so an address in the URL is checked before. Both see the same policy. */
  #connector(purpose: Purpose, { caPEM, clientCert }: PoolOptions): buildConnector.connector {
    const connect = buildConnector({
      timeout: CONNECT_MS,
      allowH2: false,
      keepAlive: true,
      lookup: (hostname, _options, done) => this.#resolve(hostname, purpose, done),
      ...(caPEM !== undefined && { ca: rootsWith(caPEM) }),
      ...(clientCert !== undefined && { cert: clientCert.certPEM, key: clientCert.keyPEM }),
    })
    return (target, done) => {
      const literal = isIP(target.hostname) !== 0
      if (literal && !this.#allowed(target.hostname, target.hostname, purpose)) {
        done(new BlockedAddress(target.hostname, target.hostname), null)
        return
      }
      connect(target, done)
    }
  }

  /** One resolution for one connection. A name with a single forbidden address is refused as a whole. */
  #resolve(hostname: string, purpose: Purpose, done: LookupDone): void {
    this.#lookup(hostname).then(
      (found) => {
        const blocked = found.find(({ address }) => !this.#allowed(hostname, address, purpose))
        if (blocked !== undefined) done(new BlockedAddress(hostname, blocked.address), [])
        else done(found.length === 0 ? notFound(hostname) : null, [...found])
      },
      (error: unknown) => done(error instanceof Error ? error : notFound(hostname), []),
    )
  }

  #allowed(hostname: string, address: string, purpose: Purpose): boolean {
    if (this.#check(address, addressPolicies[purpose])) return true
    this.#log.warn({ hostname, address, purpose }, 'A connection to a forbidden address was refused.')
    return false
  }
}

type LookupDone = (error: NodeJS.ErrnoException | null, found: { address: string; family: number }[]) => void

function notFound(hostname: string): Error {
  return Object.assign(new Error(`${hostname} has no address.`), { code: 'ENOTFOUND' })
}

function httpOrigin(text: string): string {
  const { protocol, origin, username, password } = new URL(text)
  if (protocol !== 'http:' && protocol !== 'https:')
    throw new Error(`"${protocol}" cannot be dialled: use http or https.`)
  if (username !== '' || password !== '') throw new Error('A URL to dial must not carry credentials.')
  return origin
}

function keyOf({ caPEM, clientCert, headersTimeoutMs }: PoolOptions): string {
  if (caPEM === undefined && clientCert === undefined) return `${headersTimeoutMs ?? ''}`
  const hash = createHash('sha256').update(JSON.stringify([caPEM, clientCert?.certPEM, clientCert?.keyPEM]))
  return `${headersTimeoutMs ?? ''} ${hash.digest('base64')}`
}

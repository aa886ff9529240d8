import { lookup as systemLookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { type Clock, systemClock } from '@plat/core'
import type { Log } from '@plat/process'
import { buildConnector, Pool } from 'undici'
import { type HttpClient, OriginClient } from '../client/client.ts'
import { type AddressCheck, createAddressCheck } from './addresses.ts'
import { BlockedAddress } from './errors.ts'
import { type Fetched, type FetchOptions, fetchBytes } from './fetch-bytes.ts'
import { addressPolicies, type Purpose } from './purpose.ts'
import { rootsWith } from './roots.ts'
import { Shelf } from './shelf.ts'
import { opener } from './socket.ts'
import { TrustMarks, type TrustOptions } from './trust.ts'

/** Resolves a name to all of its addresses. */
export type Lookup = (hostname: string) => Promise<readonly { readonly address: string; readonly family: number }[]>

export interface DialerOptions {
  /** Exceptions from the address policies. */
  readonly allowedCIDRs?: readonly string[]
  readonly lookup?: Lookup
  readonly clock?: Clock
  readonly log: Log
}

export interface PoolOptions extends TrustOptions {
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
  /**
   * The client of an origin: what carries calls. Ask for it with each request, as for a pool. Throws on what is no http or https URL.
   */
  client(origin: URL | string, purpose: Purpose, options?: TrustOptions): HttpClient
  /** A small GET, such as for a key set, or a small POST. Rejects like a request of a pool, and with `ResponseTooLarge`. */
  fetchBytes(url: URL | string, purpose: Purpose, options: FetchOptions & PoolOptions): Promise<Fetched>
  /** Cuts every connection. */
  close(): Promise<void>
}

/** Pools, and clients, that are kept; beyond it the one unused for longest is closed after its requests. */
const MAX_KEPT = 512
/** Connections of a pool. */
const MAX_POOL_CONNECTIONS = 256
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

/** Builds the dialer. Throws when an allowed range is malformed. */
export function createDialer(options: DialerOptions): Dialer {
  return new GuardedDialer(options)
}

class GuardedDialer implements Dialer {
  readonly #check: AddressCheck
  readonly #lookup: Lookup
  readonly #clock: Clock
  readonly #log: Log
  readonly #pools: Shelf<Pool>
  readonly #clients = new Shelf<OriginClient>(MAX_KEPT, (client) => client.retire())
  readonly #marks = new TrustMarks()
  #closed = false

  constructor(options: DialerOptions) {
    this.#check = createAddressCheck(options.allowedCIDRs ?? [])
    this.#lookup = options.lookup ?? ((hostname) => systemLookup(hostname, { all: true, verbatim: true }))
    this.#clock = options.clock ?? systemClock
    this.#log = options.log
    this.#pools = new Shelf(MAX_KEPT, (pool) => {
      pool.close().catch((error: unknown) => this.#log.warn({ err: error }, 'A pool did not close.'))
    })
  }

  pool(origin: URL | string, purpose: Purpose, options?: PoolOptions): Pool {
    const text = typeof origin === 'string' ? origin : origin.origin
    const key = this.#keyOf(text, purpose, options)
    const kept = this.#pools.get(key)
    if (kept !== undefined) return kept
    const exact = httpOrigin(text)
    if (exact !== text) return this.pool(exact, purpose, options)
    return this.#pools.put(key, this.#openPool(exact, purpose, options ?? {}))
  }

  client(origin: URL | string, purpose: Purpose, options?: TrustOptions): HttpClient {
    const text = typeof origin === 'string' ? origin : origin.origin
    const key = this.#keyOf(text, purpose, options)
    const kept = this.#clients.get(key)
    if (kept !== undefined) return kept
    const exact = httpOrigin(text)
    if (exact !== text) return this.client(exact, purpose, options)
    return this.#clients.put(key, this.#openClient(new URL(exact), purpose, options))
  }

  fetchBytes(url: URL | string, purpose: Purpose, options: FetchOptions & PoolOptions): Promise<Fetched> {
    const target = new URL(url)
    const { caPEM, clientCert } = options
    const pool = this.pool(target, purpose, { ...(caPEM && { caPEM }), ...(clientCert && { clientCert }) })
    return fetchBytes(pool, target, options, this.#clock)
  }

  async close(): Promise<void> {
    this.#closed = true
    for (const client of this.#clients.clear()) client.destroy()
    await Promise.all(this.#pools.clear().map((pool) => pool.destroy()))
  }

  #keyOf(origin: string, purpose: Purpose, options: PoolOptions | undefined): string {
    if (options === undefined) return `${purpose} ${origin}`
    return `${purpose} ${origin} ${options.headersTimeoutMs ?? ''} ${this.#marks.of(options)}`
  }

  #openPool(origin: string, purpose: Purpose, options: PoolOptions): Pool {
    if (this.#closed) throw new Error('The dialer is closed.')
    return new Pool(origin, {
      connections: MAX_POOL_CONNECTIONS,
      pipelining: 1,
      allowH2: false,
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: options.headersTimeoutMs ?? HEADERS_MS,
      bodyTimeout: BODY_IDLE_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MAX_MS,
      connect: this.#connector(purpose, options),
    })
  }

  #openClient(origin: URL, purpose: Purpose, options: TrustOptions | undefined): OriginClient {
    if (this.#closed) throw new Error('The dialer is closed.')
    const open = opener(origin, {
      ...options,
      lookup: (hostname, _options, done) => this.#resolve(hostname, purpose, done),
      checkLiteral: (address) => {
        if (!this.#allowed(address, address, purpose)) throw new BlockedAddress(address, address)
      },
    })
    return new OriginClient({ host: origin.host, clock: this.#clock, open })
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

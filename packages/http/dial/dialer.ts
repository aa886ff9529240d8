import { lookup as systemLookup } from 'node:dns/promises'
import { type Clock, systemClock } from '@plat/core'
import type { Log } from '@plat/process'
import { buildConnector, Pool } from 'undici'
import { type HttpClient, OriginClient } from '../client/client.ts'
import { type Fetched, type FetchOptions, fetchBytes } from './fetch-bytes.ts'
import { type Aim, Guard, type Lookup, type Residency } from './guard.ts'
import type { Purpose } from './purpose.ts'
import { rootsWith } from './roots.ts'
import { Shelf } from './shelf.ts'
import { opener } from './socket.ts'
import { TrustMarks, type TrustOptions } from './trust.ts'

export interface DialerOptions {
  /** Exceptions from the address policies. */
  readonly allowedCIDRs?: readonly string[]
  readonly lookup?: Lookup
  readonly clock?: Clock
  readonly log: Log
}

/** Whom a connection believes, and where it may lead. Connections of one set of options are never used under another. */
export interface DialOptions extends TrustOptions {
  readonly residency?: Residency
}

export interface PoolOptions extends DialOptions {
  /** Milliseconds until the head of an answer must have come. A request may set its own. */
  readonly headersTimeoutMs?: number
}

/** The one way out of the process: each connection resolves once, checks every address, and goes to a checked one. */
export interface Dialer {
  /**
   * The pool of an origin. Ask for it with each request: pools that were not used for long make room for others.
   * Redirects are never followed: whoever wants the next place asks the dialer for it, which checks it like any other. Throws on what is no http or https URL.
   */
  pool(origin: URL | string, purpose: Purpose, options?: PoolOptions): Pool
  /**
   * The client of an origin: what carries calls. Ask for it with each request, as for a pool. Throws on what is no http or https URL.
   */
  client(origin: URL | string, purpose: Purpose, options?: DialOptions): HttpClient
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
  readonly #guard: Guard
  readonly #clock: Clock
  readonly #pools: Shelf<Pool>
  readonly #clients = new Shelf<OriginClient>(MAX_KEPT, (client) => client.retire())
  readonly #marks = new TrustMarks()
  #closed = false

  constructor(options: DialerOptions) {
    const { allowedCIDRs = [], lookup = resolveBySystem, clock = systemClock, log } = options
    this.#guard = new Guard(allowedCIDRs, lookup, log)
    this.#clock = clock
    this.#pools = new Shelf(MAX_KEPT, (pool) => {
      pool.close().catch((error: unknown) => log.warn({ err: error }, 'A pool did not close.'))
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

  client(origin: URL | string, purpose: Purpose, options?: DialOptions): HttpClient {
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
    const pool = this.pool(target, purpose, connectionOptions(options))
    return fetchBytes(pool, target, options, this.#clock)
  }

  async close(): Promise<void> {
    this.#closed = true
    for (const client of this.#clients.clear()) client.destroy()
    await Promise.all(this.#pools.clear().map((pool) => pool.destroy()))
  }

  #keyOf(origin: string, purpose: Purpose, options: PoolOptions | undefined): string {
    if (options === undefined) return `${purpose} ${origin}`
    return `${purpose} ${origin} ${options.headersTimeoutMs ?? ''} ${this.#marks.of(options)} ${options.residency?.mark ?? ''}`
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

  #openClient(origin: URL, purpose: Purpose, options: DialOptions | undefined): OriginClient {
    if (this.#closed) throw new Error('The dialer is closed.')
    const aim: Aim = { purpose, residency: options?.residency }
    const open = opener(origin, {
      ...options,
      lookup: (hostname, _options, done) => this.#guard.resolve(hostname, aim, done),
      faultOfLiteral: (hostname) => this.#guard.faultOfLiteral(hostname, aim),
    })
    return new OriginClient({ host: origin.host, clock: this.#clock, open })
  }

  #connector(purpose: Purpose, { caPEM, clientCert, residency }: PoolOptions): buildConnector.connector {
    const aim: Aim = { purpose, residency }
    const connect = buildConnector({
      timeout: CONNECT_MS,
      allowH2: false,
      keepAlive: true,
      lookup: (hostname, _options, done) => this.#guard.resolve(hostname, aim, done),
      ...(caPEM !== undefined && { ca: rootsWith(caPEM) }),
      ...(clientCert !== undefined && { cert: clientCert.certPEM, key: clientCert.keyPEM }),
    })
    return (target, done) => {
      const fault = this.#guard.faultOfLiteral(target.hostname, aim)
      if (fault !== null) done(fault, null)
      else connect(target, done)
    }
  }
}

const resolveBySystem: Lookup = (hostname) => systemLookup(hostname, { all: true, verbatim: true })

/** What of the options for a fetch is about its connection: the rest must not tell pools apart. */
function connectionOptions({ caPEM, clientCert, residency }: DialOptions): DialOptions {
  return { ...(caPEM && { caPEM }), ...(clientCert && { clientCert }), ...(residency && { residency }) }
}

function httpOrigin(text: string): string {
  const { protocol, origin, username, password } = new URL(text)
  if (protocol !== 'http:' && protocol !== 'https:')
    throw new Error(`"${protocol}" cannot be dialled: use http or https.`)
  if (username !== '' || password !== '') throw new Error('A URL to dial must not carry credentials.')
  return origin
}

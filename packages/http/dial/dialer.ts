import { lookup as systemLookup } from 'node:dns/promises'
import type { Socket } from 'node:net'
import { type Clock, LruCache, type PoolBound, type PoolObserver, systemClock } from '@plat/core'
import type { Log } from '@plat/process'
import { type HttpClient, OriginClient } from '../client/client.ts'
import { type Fetched, type FetchOptions, fetchBytes } from './fetch-bytes.ts'
import { type Aim, Guard, type Lookup, type Residency } from './guard.ts'
import { NameLookups } from './name-lookups.ts'
import type { Purpose } from './purpose.ts'
import { RawSockets } from './raw.ts'
import { opener, type SocketOptions } from './socket.ts'
import { TrustMarks, type TrustOptions } from './trust.ts'

export interface DialerOptions {
  /** Exceptions from the address policies. */
  readonly allowedCIDRs?: readonly string[]
  readonly lookup?: Lookup
  readonly clock?: Clock
  readonly log: Log
  /** Shows connections in use and counts refused requests. */
  readonly meter?: PoolObserver
  /** The same for names that are being looked up. */
  readonly lookupMeter?: PoolObserver
}

/** Whom a connection believes, and where it may lead. Connections of one set of options are never used under another. */
export interface DialOptions extends TrustOptions {
  readonly residency?: Residency
  /** Where the endpoint runs, if its configuration can state it; empty: not known. Checked by the dialer that keeps the residency rules. */
  readonly jurisdiction?: string
}

export interface ConnectOptions extends DialOptions {
  readonly timeoutMs: number
  /** The caller whose share of name look-ups is used. */
  readonly caller?: string
}

/** The one way out of the process: each connection resolves once, checks every address, and goes to a checked one. */
export interface Dialer {
  /**
   * The client of an origin. Ask for it with each request: clients that were not used for long make room for others.
   * Redirects are never followed: whoever wants the next place asks the dialer for it, which checks it like any other. Throws on what
   * is no http or https URL.
   */
  client(origin: URL | string, purpose: Purpose, options?: DialOptions): HttpClient
  /** A small request with its whole answer, such as for a key set. Rejects like a request of a client, and with `ResponseTooLargeError`. */
  fetchBytes(url: URL | string, purpose: Purpose, options: FetchOptions & DialOptions): Promise<Fetched>
  /**
   * A connection of its own to `tcp://host:port` or `tls://host:port`, for what speaks no HTTP: ready to be written to, over TLS with
   * the certificate accepted, and open until both sides have closed it. Rejects with the socket's error, or with a `TimeoutError` when
   * it takes longer than `timeoutMs`.
   */
  connect(target: URL, purpose: Purpose, options: ConnectOptions): Promise<Socket>
  /** Cuts every connection. */
  close(): void
}

/** Clients that are kept for each purpose; beyond it the one unused for longest is closed after its requests. */
const MAX_KEPT = 512

/** Builds the dialer. Throws when an allowed range is malformed. */
export function createDialer(options: DialerOptions): Dialer {
  return new GuardedDialer(options)
}

class GuardedDialer implements Dialer {
  readonly #guard: Guard
  readonly #clock: Clock
  readonly #meter: PoolObserver | undefined
  readonly #clients = new Map<Purpose, LruCache<string, OriginClient>>()
  readonly #marks = new TrustMarks()
  readonly #raw: RawSockets
  #closed = false

  constructor(options: DialerOptions) {
    const { allowedCIDRs, lookup, clock = systemClock, log, meter, lookupMeter } = options
    const names = lookup === undefined ? systemNames : new NameLookups(lookup, clock)
    this.#guard = new Guard({ allowedCIDRs, names, log, onRefused: (bound) => lookupMeter?.refused(bound) })
    lookupMeter?.watch(() => names.used)
    this.#clock = clock
    this.#meter = meter
    meter?.watch(() => this.#used())
    this.#raw = new RawSockets(clock)
  }

  client(origin: URL | string, purpose: Purpose, options?: DialOptions): HttpClient {
    const text = typeof origin === 'string' ? origin : origin.origin
    const clients = this.#clients.get(purpose) ?? this.#newCache(purpose)
    // Where there are no options the origin is the key: a text that is put together for each request is hashed anew each time.
    const key = options === undefined ? text : this.#keyOf(text, options)
    const kept = clients.get(key)
    if (kept !== undefined) return kept
    const exact = httpOrigin(text)
    if (exact !== text) return this.client(exact, purpose, options)
    const client = this.#openClient(new URL(exact), purpose, options)
    clients.set(key, client)
    return client
  }

  fetchBytes(url: URL | string, purpose: Purpose, options: FetchOptions & DialOptions): Promise<Fetched> {
    const target = new URL(url)
    return fetchBytes(this.client(target, purpose, connectionOptions(options)), target, options, this.#clock)
  }

  async connect(target: URL, purpose: Purpose, options: ConnectOptions): Promise<Socket> {
    if (this.#closed) throw new Error('The dialer is closed.')
    const checked = this.#checked({ purpose, residency: options.residency }, options)
    return await this.#raw.open(target, checked, options.timeoutMs)
  }

  close(): void {
    this.#closed = true
    this.#raw.cut()
    for (const clients of this.#clients.values()) {
      for (const client of clients.values()) client.destroy()
      clients.clear()
    }
  }

  #used(): number {
    let used = 0
    for (const clients of this.#clients.values()) for (const client of clients.values()) used += client.used
    return used
  }

  #newCache(purpose: Purpose): LruCache<string, OriginClient> {
    const onEvicted = (client: OriginClient) => client.retire()
    const clients = new LruCache<string, OriginClient>({ maxEntries: MAX_KEPT, onEvicted })
    this.#clients.set(purpose, clients)
    return clients
  }

  #keyOf(origin: string, options: DialOptions): string {
    return `${origin} ${this.#marks.of(options)} ${options.residency?.mark ?? ''}`
  }

  #openClient(origin: URL, purpose: Purpose, options: DialOptions | undefined): OriginClient {
    if (this.#closed) throw new Error('The dialer is closed.')
    const open = opener(origin, this.#checked({ purpose, residency: options?.residency }, options))
    const onRefused = (bound: PoolBound) => this.#meter?.refused(bound)
    return new OriginClient({ host: origin.host, clock: this.#clock, open, onRefused })
  }

  #checked(aim: Aim, options: DialOptions | undefined): SocketOptions {
    return {
      ...options,
      lookup: (caller) => (hostname, _options, done) => this.#guard.resolve(hostname, { ...aim, caller }, done),
      faultOfLiteral: (hostname) => this.#guard.faultOfLiteral(hostname, aim),
    }
  }
}

/** All dialers of the process share its threads. The system's own way, so that `/etc/hosts` and the search list hold. */
const systemNames = new NameLookups((hostname) => systemLookup(hostname, { all: true, verbatim: true }), systemClock)

/** What of the options for a fetch is about its connection: the rest must not tell clients apart. */
function connectionOptions({ caPEM, clientCert, serverName, residency }: DialOptions): DialOptions {
  return {
    ...(caPEM && { caPEM }),
    ...(clientCert && { clientCert }),
    ...(serverName && { serverName }),
    ...(residency && { residency }),
  }
}

function httpOrigin(text: string): string {
  const { protocol, origin, username, password } = new URL(text)
  if (protocol !== 'http:' && protocol !== 'https:')
    throw new Error(`"${protocol}" cannot be dialled: use http or https.`)
  if (username !== '' || password !== '') throw new Error('A URL to dial must not carry credentials.')
  return origin
}

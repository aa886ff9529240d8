import { lookup as systemLookup } from 'node:dns/promises'
import type { Socket } from 'node:net'
import { type Clock, LruCache, type PoolBound, type PoolObserver, systemClock } from '@plat/core'
import type { Log } from '@plat/process'
import { type HttpClient, OriginClient } from '../client/client.ts'
import { type Fetched, type FetchOptions, fetchBytes } from './fetch-bytes.ts'
import { type Aim, Guard, type Residency } from './guard.ts'
import { type Lookup, NameLookups } from './name-lookups.ts'
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
  /** Reports connections in use and counts refused requests. */
  readonly meter?: PoolObserver
  /** Reports name look-ups in progress and counts refused ones. */
  readonly lookupMeter?: PoolObserver
}

/** TLS trust roots and allowed destinations. A connection is used only with the options it was opened with. */
export interface DialOptions extends TrustOptions {
  readonly residency?: Residency
  /** Jurisdiction of the endpoint, if configured; empty when unknown. Checked by the dialer that enforces residency rules. */
  readonly jurisdiction?: string
}

export interface ConnectOptions extends DialOptions {
  readonly timeoutMs: number
  /** Caller whose share of name look-ups is used. */
  readonly caller?: string
}

/** The only way to open outgoing connections: each one resolves the name once, checks every address, and connects to a checked one. */
export interface Dialer {
  /**
   * Returns the client of an origin. Call it for each request: clients unused for long are evicted. Redirects are never followed: request the target
   * through the dialer, which checks it. Throws on a URL that is not http or https.
   */
  client(origin: URL | string, purpose: Purpose, options?: DialOptions): HttpClient
  /**
   * Sends a small request, such as for a key set, and reads the whole response. Rejects like a request of a client, or with `ResponseTooLargeError`.
   */
  fetchBytes(url: URL | string, purpose: Purpose, options: FetchOptions & DialOptions): Promise<Fetched>
  /**
   * Opens a connection to `tcp://host:port` or `tls://host:port` for protocols other than HTTP. Resolves when it is writable, over TLS with the
   * certificate verified; it stays open until both sides close it. Rejects with the socket's error, or with `TimeoutError` after `timeoutMs`.
   */
  connect(target: URL, purpose: Purpose, options: ConnectOptions): Promise<Socket>
  /** Destroys every connection. */
  close(): void
}

/** Maximum number of cached clients per purpose; beyond it the least recently used one is closed after its requests. */
const MAX_KEPT = 512

/** Creates the dialer. Throws when an allowed range is malformed. */
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
    // Without options the origin is the key: a string composed for each request would have to be hashed each time.
    const key = options === undefined ? text : this.#keyOf(text, options)
    const cached = clients.get(key)
    if (cached !== undefined) return cached
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

/** Shared by all dialers, since they share the threads of the process. Uses the system resolver, so that `/etc/hosts` and the search list apply. */
const systemNames = new NameLookups((hostname) => systemLookup(hostname, { all: true, verbatim: true }), systemClock)

/** Selects the connection options of a fetch: the other options must not create separate clients. */
function connectionOptions({ caPEM, clientCert, serverName, residency, socketPath }: DialOptions): DialOptions {
  return {
    ...(caPEM && { caPEM }),
    ...(clientCert && { clientCert }),
    ...(serverName && { serverName }),
    ...(residency && { residency }),
    ...(socketPath && { socketPath }),
  }
}

function httpOrigin(text: string): string {
  const { protocol, origin, username, password } = new URL(text)
  if (protocol !== 'http:' && protocol !== 'https:')
    throw new Error(`"${protocol}" cannot be dialled: use http or https.`)
  if (username !== '' || password !== '') throw new Error('A URL to dial must not carry credentials.')
  return origin
}

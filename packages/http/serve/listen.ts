import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type Bagged, type Clock, type Ids, NOWHERE, SwapRemoveSet, withoutTrailingSlash } from '@plat/core'
import type { Log } from '@plat/process'
import type { FastifyInstance } from 'fastify'
import { addressOf, bind, parseAddress } from './address.ts'
import { createApi } from './api.ts'
import { limitConnections, type PeerOptions } from './connections/limit.ts'
import { judgeOrigin } from './cors.ts'
import { faults, type HttpFault, parserFault, type RenderFault, renderFault, sendFault, writeFault } from './errors.ts'
import { headFault, isLoopbackAddress, isLoopbackHost } from './head.ts'
import { defaultLimits, type ListenLimits } from './limits.ts'
import { Request } from './request.ts'
import { ServerResponseWithId } from './server-response.ts'
import { followTls, type TlsOptions, tlsServerOptions } from './tls.ts'
import { isWebSocketRequest, offerUpgrade } from './upgrade.ts'

/** Interval at which a drain closes idle connections, in milliseconds. */
const SWEEP_EVERY_MS = 100

/** One request with its response, as passed to a raw route. Every response head carries `x-plat-request-id`. */
export interface Exchange {
  /** UUIDv7. */
  readonly id: string
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/** Routes requests whose path begins with `prefix` directly to `handle`, bypassing the API framework. The longest prefix wins. */
export interface RawRoute {
  /** Such as `/mcp/`. Compared with the path as sent, less one trailing slash: percent-encoding and dots are not resolved. */
  readonly prefix: string
  /** Optional filter. Requests for which it returns false are routed as if this route did not exist. */
  takes?(request: IncomingMessage): boolean
  handle(exchange: Exchange): void
}

/** A CONNECT request (RFC 9110, section 9.3.6). The handler writes the response to `socket`. */
export interface TunnelRequest {
  /** UUIDv7. */
  readonly id: string
  /** Head only: `url` is `<host>:<port>`. */
  readonly request: IncomingMessage
  /** The connection, unread after the head. It already has an error listener. */
  readonly socket: Duplex
  /** Closes the connection once everything written is sent. */
  leave(): void
}

export interface ListenOptions extends PeerOptions {
  /** `:8080`, `127.0.0.1:0`, `[::1]:8080`. Port 0 selects a free port. */
  readonly address: string
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly raw?: readonly RawRoute[]
  /** Handles every CONNECT; absent: CONNECT is refused. */
  readonly tunnel?: ((request: TunnelRequest) => void) | undefined
  /** Which requests for a WebSocket routes of `api` may take the connection of (`takeUpgrade`); absent: none. All others are plain requests. */
  readonly upgrades?: ((request: IncomingMessage) => boolean) | undefined
  /** Mounts all routes that are not raw. */
  readonly api?: (app: FastifyInstance) => void | Promise<void>
  readonly limits?: Partial<ListenLimits>
  /** Absent: plain HTTP. */
  readonly tls?: TlsOptions
  /** Additional host names that a listener on a loopback address answers to. */
  readonly hosts?: readonly string[]
  /**
   * Allowed origins of web pages, such as `https://console.example`: they get CORS headers, other origins are refused. Absent: `Origin` is ignored.
   */
  readonly origins?: ReadonlySet<string>
  /** Renders errors at the HTTP level in the shape of the service. */
  readonly renderFault?: RenderFault
}

/** A listening server. */
export interface Listener {
  /** `http://127.0.0.1:8080`, without a trailing slash. A listener on every address is named by 127.0.0.1. */
  readonly url: string
  readonly port: number
  /** Stops accepting, waits at most `timeoutMs` for requests in flight, then destroys the remaining connections. */
  drain(timeoutMs: number): Promise<void>
  /** Closes at once and destroys connections in flight. */
  close(): Promise<void>
}

/** Starts to listen. Rejects with a message naming the address when it is malformed, in use or not local. */
export async function listen(options: ListenOptions): Promise<Listener> {
  const front = new HttpFront(options)
  const address = parseAddress(options.address)
  if (address === null)
    throw new Error(`"${options.address}" is not an address to listen on: write "host:port" or ":port".`)
  await front.mount()
  await front.secure()
  try {
    await bind(front.server, options.address, address)
  } catch (error) {
    await front.close()
    throw error
  }
  return front.opened()
}

/** A request whose response is not complete. */
class OpenExchange implements Exchange, Bagged {
  readonly id: string
  readonly request: IncomingMessage
  readonly response: ServerResponse
  place = NOWHERE

  constructor(id: string, request: IncomingMessage, response: ServerResponse) {
    this.id = id
    this.request = request
    this.response = response
  }
}

/** The HTTP server: checks each head, assigns the request id, and dispatches to a raw route or the API. */
class HttpFront {
  readonly server: Server | TlsServer
  readonly #options: ListenOptions
  readonly #limits: ListenLimits
  readonly #routes: readonly RawRoute[]
  readonly #names: ReadonlySet<string>
  readonly #render: RenderFault
  readonly #inFlight = new SwapRemoveSet<OpenExchange>()
  /** Connections handed over to tunnels. */
  readonly #tunnels = new Set<Duplex>()
  /** Connections with a refused head: whatever the parser finds later in the same bytes is ignored. */
  readonly #distrusted = new WeakSet<Socket>()
  /** Connections that were sent the reason for their closing. */
  readonly #leaving = new WeakSet<Duplex>()
  /** Requests answered before their end arrived, by connection. */
  readonly #unread = new WeakMap<Duplex, IncomingMessage>()
  #api: ((request: IncomingMessage, response: ServerResponse, id: string) => void) | null = null
  #closeApi: () => Promise<void> = async () => {}
  #stopTls: () => void = () => {}
  #loopback = false
  /** The last Host header that passed the check: the next one is nearly always equal. */
  #knownHost: string | null = null
  #draining = false

  constructor(options: ListenOptions) {
    this.#options = options
    this.#limits = { ...defaultLimits, ...options.limits }
    this.#routes = [...(options.raw ?? [])].sort((a, b) => b.prefix.length - a.prefix.length)
    this.#names = new Set((options.hosts ?? []).map((name) => name.toLowerCase()))
    this.#render = options.renderFault ?? renderFault
    this.server = this.#createServer()
  }

  async mount(): Promise<void> {
    const api = await createApi(this.server, {
      mount: this.#options.api,
      log: this.#options.log,
      maxBodyBytes: this.#limits.maxBodyBytes,
      renderFault: this.#render,
    })
    this.#api = api.handle
    this.#closeApi = api.close
  }

  /** Loads certificate and key before the first connection. */
  async secure(): Promise<void> {
    const { tls, clock, log } = this.#options
    const { server } = this
    if (tls === undefined || !('setSecureContext' in server)) return
    this.#stopTls = await followTls(tls, { use: (context) => server.setSecureContext(context), clock, log })
  }

  async close(): Promise<void> {
    this.#stopTls()
    await this.#closeApi()
  }

  opened(): Listener {
    const { address, port } = addressOf(this.server)
    this.#loopback = isLoopbackAddress(address)
    const host = address === '::' || address === '0.0.0.0' ? '127.0.0.1' : address
    return {
      url: `${this.#options.tls === undefined ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${port}`,
      port,
      drain: (timeoutMs) => this.#drain(timeoutMs),
      close: () => this.#drain(0),
    }
  }

  #createServer(): Server | TlsServer {
    const limits = this.#limits
    const { tls } = this.#options
    const http = {
      IncomingMessage: Request,
      ServerResponse: ServerResponseWithId,
      headersTimeout: limits.headersMs,
      requestTimeout: limits.requestMs,
      keepAliveTimeout: limits.keepAliveMs,
      connectionsCheckingInterval: limits.checkEveryMs,
      maxHeaderSize: limits.maxHeaderBytes,
      noDelay: true,
      // `headFault` requires Host, so that a missing one gets this package's error body.
      requireHostHeader: false,
      // Overrides any process flag for lenient parsing: `headFault` relies on the parser to refuse control bytes.
      httpValidation: 'strict' as const,
      // `Upgrade` may be ignored (RFC 9110, section 7.8): the request is answered over HTTP/1.1.
      shouldUpgradeCallback: (request: IncomingMessage) => this.#upgrades(request),
    }
    const server =
      tls === undefined ? createServer(http) : createTlsServer({ ...http, ...tlsServerOptions(tls, limits.headersMs) })
    limitConnections(server, limits, this.#options)
    // One more than allowed, so that `headFault` can detect the excess.
    server.maxHeadersCount = limits.maxHeaders + 1
    server.maxRequestsPerSocket = limits.maxRequestsPerSocket
    const take = (request: IncomingMessage, response: ServerResponseWithId) => this.#take(request, response)
    // Handling the expectation events prevents Node from sending 100 for a refused head (RFC 9110, section 10.1.1).
    server.on('request', take).on('checkContinue', take).on('checkExpectation', take)
    server.on('connect', (request, socket: Duplex, rest: Buffer) => this.#takeTunnel(request, socket, rest))
    server.on('upgrade', (request, _socket, rest: Buffer) => this.#takeUpgrade(request, rest))
    server.on('clientError', (error: NodeJS.ErrnoException, socket) => this.#broken(error, socket))
    return server
  }

  #take(request: IncomingMessage, response: ServerResponseWithId): void {
    if (this.#distrusted.has(request.socket)) return
    const id = this.#options.ids.uuid()
    response.requestId = id
    if (this.#draining) response.setHeader('connection', 'close')
    const visit = new OpenExchange(id, request, response)
    this.#inFlight.add(visit)
    response.on('close', () => this.#finished(visit))
    const fault = headFault(request, this.#limits.maxHeaders) ?? this.#hostFault(request)
    if (fault !== null) {
      this.#distrusted.add(request.socket)
      this.#refuse(visit, fault)
      return
    }
    const { origins } = this.#options
    const judged = origins === undefined ? null : judgeOrigin(origins, request, response)
    if (judged === 'answered') return
    if (judged !== null) {
      this.#refuse(visit, judged)
      return
    }
    if (request.headers.expect !== undefined) response.writeContinue()
    // The only place that decides it: routes, records and metrics see one form.
    request.url = withoutTrailingSlash(request.url ?? '')
    try {
      this.#route(visit)
    } catch (error) {
      this.#options.log.error({ err: error, requestId: id }, 'A route threw.')
      if (response.headersSent) response.destroy()
      else sendFault(response, faults.internal, this.#render(faults.internal, id))
    }
  }

  #route(visit: OpenExchange): void {
    const { id, request, response } = visit
    const url = request.url ?? ''
    const raw = this.#routes.find((route) => url.startsWith(route.prefix) && (route.takes?.(request) ?? true))
    if (raw !== undefined) raw.handle(visit)
    else this.#api?.(request, response, id)
  }

  /** `Host` is not required: it repeats the target. */
  #takeTunnel(request: IncomingMessage, socket: Duplex, rest: Buffer): void {
    const { tunnel, ids } = this.#options
    // A response still due for an earlier request would end up inside the tunnel.
    if (this.#distrusted.has(request.socket) || this.#inFlightOn(socket) !== null) {
      socket.destroy()
      return
    }
    const fault = headFault(request, this.#limits.maxHeaders) ?? (this.#draining ? faults.leaving : null)
    if (fault !== null || tunnel === undefined) {
      this.#reject(socket, fault ?? faults.tunnel)
      return
    }
    this.#tunnels.add(socket)
    socket.on('error', () => socket.destroy())
    socket.once('close', () => this.#tunnels.delete(socket))
    if (rest.length > 0) socket.unshift(rest)
    const leave = () => {
      socket.resume()
      this.#leave(socket)
    }
    tunnel({ id: ids.uuid(), request, socket, leave })
  }

  #upgrades(request: IncomingMessage): boolean {
    return !this.#draining && isWebSocketRequest(request) && this.#options.upgrades?.(request) === true
  }

  /** Any other response than the upgrade ends the connection, which has no parser any more. */
  #takeUpgrade(request: Request, rest: Buffer): void {
    const { socket } = request
    socket.on('error', () => socket.destroy())
    if (this.#distrusted.has(socket) || this.#inFlightOn(socket) !== null) {
      socket.destroy()
      return
    }
    const response = offerUpgrade(request, rest, () => {
      response.emit('close')
      this.#tunnels.add(socket)
      socket.once('close', () => this.#tunnels.delete(socket))
    })
    response.once('finish', () => this.#leave(socket))
    this.#take(request, response)
  }

  #hostFault(request: IncomingMessage): HttpFault | null {
    const { host } = request.headers
    if (!this.#loopback || host === this.#knownHost) return null
    if (isLoopbackHost(host, this.#names)) {
      this.#knownHost = host ?? null
      return null
    }
    return { status: 403, code: 'forbidden', message: 'This listener answers only to names of this machine.' }
  }

  /** Called when a response has ended or failed. Node drains a request whose body was not read; `lingerMs` bounds that. */
  #finished(visit: OpenExchange): void {
    const { request } = visit
    this.#inFlight.delete(visit)
    if (!request.complete && !request.socket.destroyed) {
      this.#unread.set(request.socket, request)
      this.#options.clock.after(this.#limits.lingerMs, () => {
        if (!request.complete) request.socket.destroy()
      })
    }
    if (this.#draining) this.server.closeIdleConnections()
  }

  /** Called on a parse error. No request may get a second response, or the one meant for later bytes. */
  #broken(error: NodeJS.ErrnoException, socket: Duplex): void {
    if (this.#leaving.has(socket)) return
    const unheard = !socket.writable || error.code === 'ECONNRESET' || error.code?.startsWith('ERR_SSL_') === true
    const isAnswered = this.#unread.get(socket)?.complete === false
    const current = this.#inFlightOn(socket)
    if (unheard || isAnswered || current?.response.headersSent) socket.destroy()
    else if (current?.request.complete) current.response.setHeader('connection', 'close')
    else this.#reject(socket, parserFault(error.code))
  }

  /** Returns the oldest request on a connection whose response is not complete, or null. */
  #inFlightOn(socket: Duplex): OpenExchange | null {
    for (const visit of this.#inFlight) if (visit.request.socket === socket) return visit
    return null
  }

  #refuse({ request: { socket }, response, id }: OpenExchange, fault: HttpFault): void {
    // Node calls this once the response is sent.
    socket.destroySoon = () => this.#leave(socket)
    sendFault(response, fault, this.#render(fault, id))
  }

  /** Sends a fault where no response object exists. */
  #reject(socket: Duplex, fault: HttpFault): void {
    const id = this.#options.ids.uuid()
    socket.on('error', () => socket.destroy())
    writeFault(socket, fault, this.#render(fault, id), id)
    socket.resume()
    this.#leave(socket)
  }

  /**
   * Closes after everything is sent. Input is discarded for a moment, because closing a connection with unread bytes resets it and loses the
   * response (RFC 9112, section 9.6).
   */
  #leave(socket: Duplex): void {
    this.#leaving.add(socket)
    socket.end()
    const cancel = this.#options.clock.after(this.#limits.lingerMs, () => socket.destroy())
    socket.once('close', cancel)
  }

  async #drain(timeoutMs: number): Promise<void> {
    this.#draining = true
    for (const { response } of this.#inFlight) if (!response.headersSent) response.setHeader('connection', 'close')
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()))
    const cut = () => {
      this.server.closeAllConnections()
      for (const socket of this.#tunnels) socket.destroy()
    }
    if (timeoutMs <= 0) cut()
    const cancel = this.#options.clock.after(timeoutMs, cut)
    // A connection whose refused body was still arriving becomes idle only after its response was sent.
    const stopSweeping = this.#options.clock.every(SWEEP_EVERY_MS, () => this.server.closeIdleConnections())
    await closed
    stopSweeping()
    cancel()
    await this.close()
  }
}

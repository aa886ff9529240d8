import { createHash, timingSafeEqual } from 'node:crypto'
import {
  type ClientRequest,
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http'
import { request as httpsRequest } from 'node:https'
import { pipeline } from 'node:stream/promises'
import { reasonOf, systemClock } from '@plat/core'

/** A loopback address that adds the session token to every call, so that the child never holds it. */
export interface Forwarder {
  /** `http://127.0.0.1:<port>/<secret>`. Only processes that know the secret can call as this session. */
  readonly url: string
  close(): Promise<void>
}

/** Hop-by-hop headers (RFC 9110 section 7.6.1), and credentials that the child might send along. */
const notForwarded = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'authorization',
  'x-api-key',
  'x-goog-api-key',
  'cookie',
  'host',
])

/** How long a gateway that starts again may refuse connections, and how often it is tried, in milliseconds. */
const RESTART_MS = 5000
const RETRY_MS = 100

/** Starts a forwarder to `gatewayURL` whose path begins with `secret`; `token` is called for each request. */
export async function startForwarder(options: {
  readonly gatewayURL: string
  readonly secret: string
  readonly token: () => string
  /** Default: 5000. */
  readonly restartMs?: number
}): Promise<Forwarder> {
  const { restartMs = RESTART_MS } = options
  const gateway = new URL(options.gatewayURL)
  const server = createServer((request, response) => {
    const path = innerPath(request, options.secret)
    if (path === null) return refuse(response, 404, 'not_found', 'no such address')
    forward(request, response, { gateway, path, token: options.token(), restartMs })
  })
  server.requestTimeout = 0 // Streams and held calls last as long as the gateway lets them.
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}/${options.secret}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** The path behind the secret, or null for a wrong secret or a Host that is not this loopback address (DNS rebinding). */
function innerPath(request: IncomingMessage, secret: string): string | null {
  const host = (request.headers.host ?? '').replace(/:\d+$/, '')
  if (host !== '127.0.0.1' && host !== 'localhost') return null
  const url = request.url ?? ''
  const slash = url.indexOf('/', 1)
  const given = url.slice(1, slash === -1 ? undefined : slash)
  if (!timingSafeEqual(digest(given), digest(secret))) return null
  return slash === -1 ? '/' : url.slice(slash)
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

interface ForwardedTo {
  readonly gateway: URL
  readonly path: string
  readonly token: string
  readonly restartMs: number
}

/** Forwards a request. While the gateway refuses connections, as when `plat up` starts it again, nothing was sent, and it is tried again. */
function forward(request: IncomingMessage, response: ServerResponse, to: ForwardedTo): void {
  const giveUpAt = systemClock.monotonic() + to.restartMs
  let cancel = () => {}
  response.on('close', () => cancel())
  request.on('error', () => cancel())
  const attempt = () => {
    const upstream = openRequest(request, to)
    if (upstream === null) {
      refuse(response, 400, 'bad_request', 'the request cannot be forwarded')
      return
    }
    cancel = () => upstream.destroy()
    let isRefused = false
    upstream.on('response', (from) => relay(from, response))
    whenConnected(upstream, to.gateway, () => request.pipe(upstream))
    upstream.on('error', (error: NodeJS.ErrnoException) => {
      isRefused = error.code === 'ECONNREFUSED' && !response.closed && systemClock.monotonic() < giveUpAt
      if (isRefused) cancel = systemClock.after(RETRY_MS, attempt)
      else failed(response, to.gateway, error)
    })
    // A response may come before the whole body is sent, such as 413. The rest is read, or the program could wait for ever to send it.
    upstream.on('close', () => {
      if (!isRefused) request.unpipe(upstream).resume()
    })
  }
  attempt()
}

function relay(from: IncomingMessage, response: ServerResponse): void {
  const forwarded = Object.entries(from.headers).filter(([name]) => !notForwarded.has(name))
  response.writeHead(from.statusCode ?? 502, Object.fromEntries(forwarded))
  response.flushHeaders()
  pipeline(from, response).catch(() => response.destroy())
}

function failed(response: ServerResponse, gateway: URL, error: Error): void {
  if (response.headersSent) response.destroy()
  else refuse(response, 502, 'upstream_error', `the gateway at ${gateway.origin} cannot be reached: ${reasonOf(error)}`)
}

/** Calls `begin` once the connection is open: until then the body is not read, so that it can be sent on another one. */
function whenConnected(upstream: ClientRequest, { protocol }: URL, begin: () => void): void {
  upstream.once('socket', (socket) => {
    if (socket.connecting) socket.once(protocol === 'https:' ? 'secureConnect' : 'connect', begin)
    else begin()
  })
}

/**
 * Opens the request to the gateway. The path is sent as it is, never resolved as a URL: `//host/x` would name another host, and the
 * token goes to the gateway alone. Returns null for a path or header that HTTP does not allow.
 */
function openRequest(
  request: IncomingMessage,
  { gateway, path, token }: { readonly gateway: URL; readonly path: string; readonly token: string },
): ClientRequest | null {
  const open = gateway.protocol === 'https:' ? httpsRequest : httpRequest
  const forwarded = Object.entries(request.headers).filter(([name]) => !notForwarded.has(name))
  const headers = { ...Object.fromEntries(forwarded), authorization: `Bearer ${token}` }
  try {
    return open(gateway, { method: request.method, path, headers })
  } catch {
    return null
  }
}

function refuse(response: ServerResponse, status: number, error: string, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ error, message }))
}

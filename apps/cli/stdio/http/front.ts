import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { readBody, reasonOf } from '@plat/core'
import type { Log } from '@plat/process'
import { readMessage } from '../message.ts'
import { HEALTH_PATH, STATUS_PATH } from '../protocol.ts'
import type { ServerRequest, StdioServer } from '../sessions/server.ts'
import { hasToken, type TlsAccess } from './access.ts'
import { Reply } from './reply.ts'

/** Headers by which the gateway names the caller. Their values are opaque. */
const AGENT_HEADER = 'plat-stdio-agent'
const SESSION_HEADER = 'plat-stdio-session'
/** The first revision without sessions. */
const FIRST_MODERN_REVISION = '2026-07-28'
/** Largest body, and bodies that are being read, in bytes. The gateway has smaller limits. */
const BODY_MAX_BYTES = 64 * 1024 * 1024
const BODIES_MAX_BYTES = 256 * 1024 * 1024
/** How long a peer may take for a TLS handshake and for the head of a request, in milliseconds. */
const HEAD_MS = 10_000
/** How long an idle connection is kept, in milliseconds: a new one costs a handshake. */
const KEEP_ALIVE_MS = 60_000
/** Connections to a port: each session may hold one open. */
const CONNECTIONS_MAX = 8192

export interface FrontOptions {
  readonly log: Log
  /** Returns a server by `<namespace>/<name>`. */
  serverOf(key: string): StdioServer | null
  status(): object
  /** Of a listener on a port; null: only the gateway can connect. */
  readonly access: TlsAccess | null
}

/** The HTTP side of the bridge: `/<namespace>/<name>` is a server, `/status` the status. */
export function createFront(options: FrontOptions): Server {
  const front = new Front(options)
  const { access } = options
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    front.handle(request, response).catch((error: unknown) => {
      options.log.error({ error: reasonOf(error) }, 'a request failed')
      response.destroy()
    })
  }
  const server = access === null ? createServer(listener) : tlsServer(access, listener)
  // Calls last as long as the gateway lets them.
  server.requestTimeout = 0
  return server
}

function tlsServer(
  { certificate, privateKey }: TlsAccess,
  listener: (request: IncomingMessage, response: ServerResponse) => void,
): Server {
  const tls = { cert: certificate, key: privateKey, minVersion: 'TLSv1.3', handshakeTimeout: HEAD_MS } as const
  const server = createTlsServer(tls, listener)
  server.headersTimeout = HEAD_MS
  server.keepAliveTimeout = KEEP_ALIVE_MS
  server.maxConnections = CONNECTIONS_MAX
  return server
}

class Front {
  readonly #options: FrontOptions
  #readingBytes = 0

  constructor(options: FrontOptions) {
    this.#options = options
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => {})
    const path = (request.url ?? '').split('?', 1)[0] ?? ''
    const { access } = this.#options
    if (access !== null && path === HEALTH_PATH) return new Reply(response, false).empty(200)
    if (access !== null && !hasToken(access, request.headers)) {
      response.writeHead(401, { 'www-authenticate': 'Bearer', connection: 'close' }).end()
      return
    }
    if (path === STATUS_PATH) {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(this.#options.status()))
      return
    }
    const server = this.#options.serverOf(path.slice(1))
    if (server === null) return new Reply(response, false).fail({ status: 404, reason: 'no such server' })
    const { headers } = request
    const acceptsEvents = (headers.accept ?? '').includes('text/event-stream')
    const incoming: ServerRequest = {
      caller: { agent: textIn(headers[AGENT_HEADER]), session: textIn(headers[SESSION_HEADER]) },
      isModern: textIn(headers['mcp-protocol-version']) >= FIRST_MODERN_REVISION,
      session: textIn(headers['mcp-session-id']) || null,
      message: null,
      reply: (own) => new Reply(response, acceptsEvents, own),
    }
    if (request.method === 'GET') await server.listen(incoming)
    else if (request.method === 'DELETE') server.end(incoming)
    else if (request.method === 'POST') await this.#post(server, incoming, request)
    else incoming.reply().empty(405)
  }

  async #post(server: StdioServer, incoming: ServerRequest, request: IncomingMessage): Promise<void> {
    const length = Number(request.headers['content-length'] ?? BODY_MAX_BYTES)
    if (length > BODY_MAX_BYTES || this.#readingBytes + length > BODIES_MAX_BYTES)
      return incoming.reply().fail({ status: 503, reason: 'the request is too large' })
    this.#readingBytes += length
    try {
      const bytes = await readBody(request, length)
      const message = bytes === null ? null : readMessage(bytes)
      if (message === null) return incoming.reply().empty(400)
      await server.post(incoming, message)
    } finally {
      this.#readingBytes -= length
    }
  }
}

function textIn(value: string | string[] | undefined): string {
  return typeof value === 'string' ? value : ''
}

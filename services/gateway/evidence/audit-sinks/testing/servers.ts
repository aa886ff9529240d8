import assert from 'node:assert/strict'
import { createServer as createHttpServer, type IncomingHttpHeaders, type RequestListener } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { createServer, type Server, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { createServer as createTlsServer, type TlsOptions } from 'node:tls'
import { createAuthority, type Issued } from '@plat/testkit/authority'
import { listening } from '@plat/testkit/local'
import { parseFrames, parseSyslog, type SyslogMessage } from './rfc5424.ts'

/** Listens until the test ends, then closes open connections. Returns the port. */
async function served(t: TestContext, server: Server): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return await listening(server)
}

/** A received request. */
export interface Posted {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export interface HttpReceiverResponse {
  readonly status: number
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface HttpReceiver {
  readonly url: string
  readonly posted: Posted[]
  answers: (request: Posted) => HttpReceiverResponse
}

/** An HTTP server that stores requests; HTTPS with `tls`. */
export async function startHttpReceiver(t: TestContext, tls: TlsOptions | null = null): Promise<HttpReceiver> {
  const posted: Posted[] = []
  const fixture: { answers: HttpReceiver['answers'] } = { answers: () => ({ status: 200 }) }
  const listener: RequestListener = async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const one = {
      method: request.method ?? '',
      path: request.url ?? '',
      headers: request.headers,
      body: Buffer.concat(chunks).toString('utf8'),
    }
    posted.push(one)
    const { status, body = '', headers = {} } = fixture.answers(one)
    response.writeHead(status, headers).end(body)
  }
  const server = tls === null ? createHttpServer(listener) : createHttpsServer(tls, listener)
  const port = await served(t, server)
  return Object.assign(fixture, { url: `${tls === null ? 'http' : 'https'}://127.0.0.1:${port}`, posted })
}

export interface SyslogReceiver {
  readonly port: number
  readonly messages: SyslogMessage[]
  /** Number of connections so far. */
  connections: number
  /** Behavior for connections; by default it reads to the end and closes. */
  behaves: 'well' | 'closes at once' | 'never closes'
}

/** A strict syslog server: length-prefixed frames, RFC 5424 messages; RFC 5425 with `tls`. */
export async function startSyslogReceiver(t: TestContext, tls: TlsOptions | null = null): Promise<SyslogReceiver> {
  const fixture: SyslogReceiver & { port: number } = { port: 0, messages: [], connections: 0, behaves: 'well' }
  const serve = (socket: Socket) => {
    fixture.connections++
    socket.on('error', () => {})
    if (fixture.behaves === 'closes at once') {
      socket.destroy()
      return
    }
    let bytes = Buffer.alloc(0)
    socket.on('data', (chunk: Buffer) => {
      const { messages, rest } = parseFrames(Buffer.concat([bytes, chunk]))
      bytes = Buffer.from(rest)
      fixture.messages.push(...messages.map(parseSyslog))
    })
    socket.on('end', () => {
      assert.equal(bytes.length, 0, 'a connection ends after a whole message')
      if (fixture.behaves === 'well') socket.end()
    })
  }
  const options = { allowHalfOpen: true }
  fixture.port = await served(
    t,
    tls === null ? createServer(options, serve) : createTlsServer({ ...options, ...tls }, serve),
  )
  return fixture
}

/** An authority with certificates for a receiver and a client. */
export async function certificates() {
  const root = await createAuthority({ name: 'root', now: Date.now() })
  const server = await root.issue({ name: 'siem', dnsNames: ['siem.example'] })
  const client = await root.issue({ name: 'plat' })
  return {
    ca: root.pem,
    client: { cert: client.pem, key: keyOf(client) },
    /** Options of a server that requests client certificates. */
    tls: { cert: server.pem, key: keyOf(server), ca: root.pem, requestCert: true, rejectUnauthorized: true },
  }
}

function keyOf({ privateKey }: Issued): string {
  return String(privateKey.export({ type: 'pkcs8', format: 'pem' }))
}

import type { IncomingHttpHeaders } from 'node:http'
import { createServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { silentLog } from '@plat/process'
import { listening } from '@plat/testkit/local'
import { createDialer, type DialerOptions } from '../../dial/dialer.ts'
import { dialFault } from '../../dial/errors.ts'
import type { HttpClient } from '../client.ts'
import type { ClientRequest } from '../request.ts'
import type { Receiver } from '../transfer.ts'

/** The response to one request; `over` resolves with the end or the failure. */
export class TestResponse implements Receiver {
  status = 0
  headers: IncomingHttpHeaders = {}
  body = ''
  failed = false
  readonly over = Promise.withResolvers<'end' | Error>()
  readonly #head = Promise.withResolvers<void>()

  get head(): Promise<void> {
    return this.#head.promise
  }

  onHead(status: number, headers: IncomingHttpHeaders): void {
    this.status = status
    this.headers = headers
    this.#head.resolve()
  }

  onData(bytes: Uint8Array): void {
    this.body += Buffer.from(bytes).toString('latin1')
  }

  onEnd(): void {
    this.over.resolve('end')
  }

  onFailure(error: Error): void {
    this.failed = true
    this.over.resolve(error)
  }
}

/** Far above the time of the slowest machine; one test advances past it on its own clock. */
export const HEADERS_MS = 60_000

/** Long enough that a connection is checked again before it is used. */
export const IDLE_MS = 3_000

export const plain: ClientRequest = {
  method: 'POST',
  path: '/x',
  headers: {},
  body: Buffer.from('question'),
  headersTimeoutMs: HEADERS_MS,
  pauseTimeoutMs: 0,
}
export const get = { ...plain, method: 'GET', body: null }

export function ask(client: HttpClient, request: ClientRequest = plain) {
  const answer = new TestResponse()
  return { answer, sending: client.send(request, answer) }
}

export async function responseText(client: HttpClient, request: ClientRequest = plain): Promise<string> {
  const { answer } = ask(client, request)
  const over = await answer.over.promise
  return over === 'end' ? `${answer.status} ${answer.body}` : dialFault(over)
}

/** Starts a server that answers each read with a function, and counts its connections. */
export async function serve(t: TestContext, take: (socket: Socket, text: string, nth: number) => void) {
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    const nth = sockets.push(socket) - 1
    socket.on('error', () => {})
    socket.on('data', (bytes) => take(socket, bytes.toString('latin1'), nth))
  })
  const port = await listening(server)
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return { sockets, url: `http://127.0.0.1:${port}` }
}

export function clientOf(t: TestContext, url: string, options: Partial<DialerOptions> = {}): HttpClient {
  const dialer = createDialer({ log: silentLog, ...options })
  t.after(() => dialer.close())
  return dialer.client(url, 'mcp')
}

export const ok = (body: string, lines = '') =>
  `HTTP/1.1 200 OK\r\n${lines}Content-Length: ${body.length}\r\n\r\n${body}`

/** Waits turns of the event loop until a condition holds; bounded by the time limit of the test. */
export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve))
}

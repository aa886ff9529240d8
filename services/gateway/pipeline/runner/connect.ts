import { type IncomingHttpHeaders, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { TunnelRequest } from '@plat/http'
import type { Head, WireRequest } from '../../call/index.ts'
import type { Sink } from './exchange.ts'

/** A sink over a connection that asks to become a tunnel. What is refused is answered on it, and then it is closed. */
export class TunnelSink implements Sink {
  readonly #asked: TunnelRequest
  readonly #onGone: () => void
  headSent = false

  /** `onGone` is called when the caller left before there was an answer. */
  constructor(asked: TunnelRequest, onGone: () => void) {
    this.#asked = asked
    this.#onGone = onGone
    asked.socket.once('close', onGone)
  }

  reply(head: Head, overheadMs: number, body: Uint8Array): void {
    this.#head(head, overheadMs, ['connection: close', `content-length: ${body.byteLength}`])
    this.#asked.socket.write(body)
    this.end()
  }

  open(head: Head, overheadMs: number): void {
    this.#head(head, overheadMs, ['connection: close'])
  }

  write(bytes: Uint8Array): void {
    this.#asked.socket.write(bytes)
  }

  end(): void {
    this.#asked.leave()
  }

  /** From now on the connection's end is the tunnel's, which its owner sees. */
  tunnel(head: Head, overheadMs: number): Duplex {
    this.#head(head, overheadMs, [])
    return this.#asked.socket
  }

  destroy(): void {
    this.#asked.socket.destroy()
  }

  #head({ status, headers }: Head, overheadMs: number, more: readonly string[]): void {
    const { id, socket } = this.#asked
    this.headSent = true
    socket.off('close', this.#onGone)
    const lines = [
      `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
      ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
      `x-plat-request-id: ${id}`,
      `x-plat-decision-id: ${id}`,
      `x-plat-overhead-ms: ${overheadMs}`,
      ...more,
    ]
    socket.write(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
  }
}

/** A CONNECT as authentication and the planes see it: its path is `<host>:<port>`. */
export function wireOfTunnel({ request }: TunnelRequest): WireRequest {
  const { authorization: _, 'proxy-authorization': credentials, ...headers } = request.headers
  const { remoteAddress = '', remotePort = 0 } = request.socket
  return {
    method: 'CONNECT',
    path: request.url ?? '',
    query: '',
    headers: withToken(headers, credentials),
    body: request,
    remote: `${remoteAddress}:${remotePort}`,
    note: undefined,
  }
}

/** What a proxy is shown stands where every token stands. */
function withToken(headers: IncomingHttpHeaders, credentials: string | undefined): IncomingHttpHeaders {
  return credentials === undefined ? headers : { ...headers, authorization: bearerOf(credentials) }
}

const BASIC = /^basic +([A-Za-z0-9+/]+={0,2})$/i

/** Browsers and most tools know no other way than a user and a password (RFC 7617): the password is the token. */
function bearerOf(credentials: string): string {
  const [, basic] = BASIC.exec(credentials) ?? []
  if (basic === undefined) return credentials
  const [, password] = /^[^:]*:(.*)$/s.exec(Buffer.from(basic, 'base64').toString('latin1')) ?? []
  return password === undefined ? credentials : `Bearer ${password}`
}

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Head, WireRequest } from '../../call/index.ts'

/** The caller's side of one exchange. Only the runner writes to it. */
export interface Sink {
  /** True once the status and headers were written. */
  readonly headSent: boolean
  /** Writes a whole response at once, with its length. `ascii` is the body as a string if it is ASCII and the string exists. */
  reply(head: Head, overheadMs: number, body: Uint8Array, ascii?: string | null): void
  /** Opens a streamed response. The head is sent with the first write, or at once if `flush` is set. */
  open(head: Head, overheadMs: number, flush: boolean): void
  /** Returns a promise if the caller's buffer is full; it resolves when there is room, or the caller has left. */
  write(bytes: Uint8Array): void | Promise<void>
  end(): void
  /** Writes `head` and returns the caller's connection; null when this listener does not support tunnels. */
  tunnel(head: Head, overheadMs: number): Duplex | null
  /** Closes the connection, so that the caller can see that the response is incomplete. */
  destroy(): void
}

/** A body of at most this many bytes is written together with its head. */
const ONE_WRITE_BYTES = 64 * 1024

/** Milliseconds after which a caller that reads nothing is disconnected: its call uses memory, and perhaps an upstream connection. */
export const STALLED_CALLER_MS = 60_000

/** Statuses without a body, and so without a content-length (RFC 9110, section 8.6). */
const BODILESS: ReadonlySet<number> = new Set([204, 304])

/** A sink that writes to a response of `node:http`. */
export class ResponseSink implements Sink {
  readonly #id: string
  readonly #response: ServerResponse
  readonly #stalledMs: number
  /** The body uses chunked encoding, applied here: Node writes each chunk in several parts, which costs more than a copy. */
  #chunked = false
  headSent = false

  /** `onClosed` is called once, when the response is no longer in memory. `complete` is false if the caller left before its end. */
  constructor(
    id: string,
    response: ServerResponse,
    onClosed: (complete: boolean) => void,
    stalledMs = STALLED_CALLER_MS,
  ) {
    this.#id = id
    this.#response = response
    this.#stalledMs = stalledMs
    // `close` is emitted once, so `once` would only add the cost of its wrapper.
    response.on('close', () => onClosed(response.writableFinished))
    // Without a listener, a write after the caller left would end the process; `close` follows and is handled above.
    response.on('error', ignore)
  }

  reply(head: Head, overheadMs: number, body: Uint8Array, ascii: string | null = null): void {
    this.#head(head, overheadMs, BODILESS.has(head.status) ? null : body.byteLength)
    if (body.byteLength > ONE_WRITE_BYTES) this.#sendLarge(body)
    // Node writes head and body together if both are strings; `latin1` maps each byte to one character.
    else this.#response.end(ascii ?? latin1Of(body), 'latin1')
  }

  /** Writes a large body. The call has ended, so the socket's timeout, which restarts with each write, disconnects a stalled caller. */
  #sendLarge(body: Uint8Array): void {
    const response = this.#response
    response.setTimeout(this.#stalledMs, () => void response.destroy())
    response.end(body)
  }

  open(head: Head, overheadMs: number, flush: boolean): void {
    this.#head(head, overheadMs, null)
    this.#chunked = this.#response.chunkedEncoding
    this.#response.chunkedEncoding = false
    if (flush) this.#response.flushHeaders()
  }

  write(bytes: Uint8Array): void | Promise<void> {
    const response = this.#response
    if (this.#send(bytes) || response.destroyed) return
    return new Promise((resolve) => {
      const done = () => {
        response.off('drain', done)
        response.off('close', done)
        resolve()
      }
      response.once('drain', done)
      response.once('close', done)
    })
  }

  #send(bytes: Uint8Array): boolean {
    const response = this.#response
    if (!this.#chunked) return response.write(bytes)
    const size = bytes.byteLength
    // An empty chunk would terminate the body.
    if (size === 0) return true
    const head = `${size.toString(16)}\r\n`
    if (size <= ONE_WRITE_BYTES) return response.write(chunkOf(head, bytes))
    response.write(head, 'latin1')
    response.write(bytes)
    return response.write('\r\n', 'latin1')
  }

  end(): void {
    // Node writes the terminating chunk.
    this.#response.chunkedEncoding = this.#chunked
    this.#response.end()
  }

  /** Returns null: tunnels use `TunnelSink`, and `Upgrade` is not supported. */
  tunnel(): Duplex | null {
    return null
  }

  destroy(): void {
    this.#response.destroy()
  }

  /**
   * Writes all headers in one call, as a list: `setHeader` validates and stores each header separately, and Node looks up each member
   * of an object by name.
   */
  #head({ status, headers }: Head, overheadMs: number, length: number | null): void {
    this.headSent = true
    const fields: string[] = []
    for (const name in headers) fields.push(name, headers[name] ?? '')
    fields.push('x-plat-decision-id', this.#id, 'x-plat-overhead-ms', String(overheadMs))
    if (length !== null) fields.push('content-length', String(length))
    this.#response.writeHead(status, fields)
  }
}

function latin1Of({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('latin1')
}

/** Returns a chunk with its framing in one buffer (RFC 9112, section 7.1). */
function chunkOf(head: string, bytes: Uint8Array): Uint8Array {
  const chunk = Buffer.allocUnsafe(head.length + bytes.byteLength + 2)
  chunk.write(head, 0, 'latin1')
  chunk.set(bytes, head.length)
  chunk.write('\r\n', head.length + bytes.byteLength, 'latin1')
  return chunk
}

/** Returns the request as the planes see it: path and query separate, percent-encoding unchanged. */
export function wireOf(request: IncomingMessage): WireRequest {
  return new HttpWire(request)
}

class HttpWire implements WireRequest {
  readonly method: string
  readonly path: string
  readonly query: string
  headers: IncomingMessage['headers']
  readonly body: IncomingMessage
  note: WireRequest['note'] = undefined
  trace: WireRequest['trace'] = undefined

  constructor(request: IncomingMessage) {
    const url = request.url ?? '/'
    const mark = url.indexOf('?')
    this.method = request.method ?? 'GET'
    this.path = mark < 0 ? url : url.slice(0, mark)
    this.query = mark < 0 ? '' : url.slice(mark + 1)
    this.headers = request.headers
    this.body = request
  }

  /** Composed on demand: only failures of authentication are logged with it. */
  get remote(): string {
    const { remoteAddress = '', remotePort = 0 } = this.body.socket
    return `${remoteAddress}:${remotePort}`
  }
}

/** Removes the credentials, so that no stage, plane or upstream can see, log or forward them. */
export function removeCredentials({ headers }: WireRequest): void {
  // `delete` is expensive even for an absent member, and authentication has usually removed them.
  if (headers.authorization !== undefined) delete headers.authorization
  if (headers['proxy-authorization'] !== undefined) delete headers['proxy-authorization']
  if (headers.dpop !== undefined) delete headers.dpop
  if (headers.cookie !== undefined) delete headers.cookie
}

function ignore(): void {}

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Head, WireRequest } from '../../call/index.ts'

/** Where the runner writes: the caller's side of one exchange. Nobody else writes there. */
export interface Sink {
  /** Once true, neither status nor headers can change. */
  readonly headSent: boolean
  /** A whole answer in one write, with its length. */
  reply(head: Head, overheadMs: number, body: Uint8Array): void
  /** The head of a streamed answer. It leaves with the first write, at once when `flush` is set. */
  open(head: Head, overheadMs: number, flush: boolean): void
  /** A promise while the caller reads slower than the upstream writes; it resolves when there is room, or the caller is gone. */
  write(bytes: Uint8Array): void | Promise<void>
  end(): void
  /** The caller's connection itself after `head`; null where this listener cannot give it. */
  tunnel(head: Head, overheadMs: number): Duplex | null
  /** Drops the connection: the answer is incomplete, and the caller must be able to see that. */
  destroy(): void
}

/** A body of at most this many bytes leaves in one piece with its head. */
const ONE_WRITE_BYTES = 64 * 1024

/** A caller that reads nothing for this long is cut off, in milliseconds: its call holds memory, and may hold an upstream connection. */
export const STALLED_CALLER_MS = 60_000

/** Statuses that have no body and therefore no length (RFC 9110, section 8.6). */
const BODILESS: ReadonlySet<number> = new Set([204, 304])

/** A sink over the response of `node:http`. */
export class ResponseSink implements Sink {
  readonly #id: string
  readonly #response: ServerResponse
  readonly #stalledMs: number
  /** The body is streamed in chunks, which are framed here: Node gathers and frames each in pieces, which costs more than a copy. */
  #chunked = false
  headSent = false

  /** `onClosed` is called once: nothing of the answer is in memory any more. Not `complete`: the caller left before. */
  constructor(
    id: string,
    response: ServerResponse,
    onClosed: (complete: boolean) => void,
    stalledMs = STALLED_CALLER_MS,
  ) {
    this.#id = id
    this.#response = response
    this.#stalledMs = stalledMs
    // It closes once: `once` would only cost a wrapper, and taking the listener off again.
    response.on('close', () => onClosed(response.writableFinished))
    // Without a listener a write after the caller left would end the process; `close` follows and says it all.
    response.on('error', ignore)
  }

  reply(head: Head, overheadMs: number, body: Uint8Array): void {
    this.#head(head, overheadMs, BODILESS.has(head.status) ? null : body.byteLength)
    if (body.byteLength > ONE_WRITE_BYTES) this.#sendLarge(body)
    // Node sends a head and a body of the same kind in one piece: as text of single bytes the body stays what it is.
    else this.#response.end(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('latin1'), 'latin1')
  }

  /** The call is over, so that only the connection can watch whether its caller reads: its timer begins anew with each part that leaves. */
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
    // An empty chunk would end the body.
    if (size === 0) return true
    const head = `${size.toString(16)}\r\n`
    if (size <= ONE_WRITE_BYTES) return response.write(chunkOf(head, bytes))
    response.write(head, 'latin1')
    response.write(bytes)
    return response.write('\r\n', 'latin1')
  }

  end(): void {
    // The last chunk is Node's.
    this.#response.chunkedEncoding = this.#chunked
    this.#response.end()
  }

  /** A request stays one: a tunnel has a sink of its own, and an Upgrade is not taken. */
  tunnel(): Duplex | null {
    return null
  }

  destroy(): void {
    this.#response.destroy()
  }

  /**
   * All in one call: a header that is set beforehand is stored by its name and checked by itself. As a list, since Node would ask an
   * object for each of its members by name.
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

/** A chunk in one piece (RFC 9112, section 7.1). */
function chunkOf(head: string, bytes: Uint8Array): Uint8Array {
  const chunk = Buffer.allocUnsafe(head.length + bytes.byteLength + 2)
  chunk.write(head, 0, 'latin1')
  chunk.set(bytes, head.length)
  chunk.write('\r\n', head.length + bytes.byteLength, 'latin1')
  return chunk
}

/** The request as the planes see it: path and query apart, percent-encoding untouched. */
export function wireOf(request: IncomingMessage): WireRequest {
  const url = request.url ?? '/'
  const mark = url.indexOf('?')
  const { remoteAddress = '', remotePort = 0 } = request.socket
  return {
    method: request.method ?? 'GET',
    path: mark < 0 ? url : url.slice(0, mark),
    query: mark < 0 ? '' : url.slice(mark + 1),
    headers: request.headers,
    body: request,
    remote: `${remoteAddress}:${remotePort}`,
    note: undefined,
    trace: undefined,
  }
}

/** Takes the credentials out, so that no stage, plane or upstream can ever see, log or pass them on. */
export function removeCredentials({ headers }: WireRequest): void {
  // Deleting costs even where there is nothing to delete, and authentication leaves nothing.
  if (headers.authorization !== undefined) delete headers.authorization
  if (headers['proxy-authorization'] !== undefined) delete headers['proxy-authorization']
  if (headers.dpop !== undefined) delete headers.dpop
  if (headers.cookie !== undefined) delete headers.cookie
}

function ignore(): void {}

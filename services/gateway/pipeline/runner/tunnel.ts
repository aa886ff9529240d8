import { type IncomingHttpHeaders, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Clock } from '@plat/core'
import type { TunnelRequest } from '@plat/http'
import { deny, type Head, isDenial, type Reply, type WireRequest } from '../../call/index.ts'
import type { GovernedCall } from './call.ts'
import { aborted, abortedBy, type CallEnd, completed, failed, refused } from './call-abort.ts'
import type { Sink } from './exchange.ts'
import { ReviewChain } from './reviews.ts'

/** Idle timeout of a tunnel, in milliseconds. */
const TUNNEL_IDLE_MS = 10 * 60_000
/** Maximum lifetime of a tunnel, in milliseconds. */
const TUNNEL_TOTAL_MS = 8 * 60 * 60_000

type TunnelReply = Extract<Reply, { kind: 'tunnel' }>

/** Pipes the caller's connection and the upstream's into each other until one ends, a timeout passes, or the call is aborted. */
export async function tunnel(call: GovernedCall, reply: TunnelReply, clock: Clock): Promise<CallEnd> {
  const reviews = new ReviewChain(call, clock)
  const carried = await carry(call, reply, clock, reviews)
  const last = carried.ending === 'complete' ? await reviews.finish() : null
  const ended = isDenial(last) ? refused(last) : carried
  reviews.abandon(ended.ending)
  call.tally = reviews.tally()
  return ended
}

async function carry(call: GovernedCall, reply: TunnelReply, clock: Clock, reviews: ReviewChain): Promise<CallEnd> {
  const denial = reviews.open() ?? (await call.abort.until(reviews.beforeTunnel()))
  if (denial === aborted) {
    reply.socket.destroy()
    return abortedBy(call.abort)
  }
  const caller = denial === null ? call.sink.tunnel(reply.head, call.overheadMs(clock.monotonic())) : null
  if (caller === null) {
    reply.socket.destroy()
    return refused(denial ?? deny('internal', 'the connection cannot become a tunnel'))
  }
  const began = clock.monotonic()
  const ended = await call.abort.until(join(call, caller, reply.socket, clock))
  call.upstreamMs += clock.monotonic() - began
  // Closes a side that the other no longer reads; sides that ended normally are closed already.
  caller.destroy()
  reply.socket.destroy()
  return ended === aborted ? abortedBy(call.abort) : ended
}

/** Resolves when both sides have closed, or one failed. The shared timer of the live calls checks the timeouts. */
function join(call: GovernedCall, caller: Duplex, upstream: Duplex, clock: Clock): Promise<CallEnd> {
  const total = clock.monotonic() + TUNNEL_TOTAL_MS
  const touch = () => {
    call.deadlineAt = Math.min(clock.monotonic() + TUNNEL_IDLE_MS, total)
  }
  call.deadlineCode = 'upstream_timeout'
  call.deadlineReason = 'the tunnel was idle, or open, for too long'
  touch()
  return new Promise((resolve) => {
    const watch = (side: Duplex, other: Duplex, broken: CallEnd, count: (bytes: number) => void) => {
      side.on('data', (chunk: Uint8Array) => {
        count(chunk.byteLength)
        touch()
      })
      side.on('error', () => resolve(broken))
      side.once('close', () => {
        if (!hasEnded(side)) resolve(broken)
        // If the other side has ended too, data written to it may still be in flight, so its own `close` resolves.
        else if (other.closed || !other.readableEnded) resolve(completed)
      })
      if (side.destroyed) resolve(broken)
    }
    watch(caller, upstream, { ending: 'client', denial: null }, (bytes) => {
      call.bytesUp += bytes
    })
    watch(upstream, caller, failed(deny('upstream_error', 'the upstream closed the tunnel')), (bytes) => {
      call.bytesDown += bytes
    })
    caller.pipe(upstream)
    upstream.pipe(caller)
  })
}

/** Returns true when both directions ended and all data was flushed. */
function hasEnded(side: Duplex): boolean {
  return side.readableEnded && side.writableFinished
}

/** A sink over the connection of a CONNECT request. A refusal is written to it as an HTTP response, and closes it. */
export class TunnelSink implements Sink {
  readonly #request: TunnelRequest
  readonly #onGone: () => void
  headSent = false

  /** `onGone` is called when the caller closes the connection before the response. */
  constructor(request: TunnelRequest, onGone: () => void) {
    this.#request = request
    this.#onGone = onGone
    request.socket.once('close', onGone)
  }

  reply(head: Head, overheadMs: number, body: Uint8Array): void {
    this.#head(head, overheadMs, ['connection: close', `content-length: ${body.byteLength}`])
    this.#request.socket.write(body)
    this.end()
  }

  open(head: Head, overheadMs: number): void {
    this.#head(head, overheadMs, ['connection: close'])
  }

  write(bytes: Uint8Array): void {
    this.#request.socket.write(bytes)
  }

  end(): void {
    this.#request.leave()
  }

  /** Returns the connection. From now on the owner of the tunnel handles its end. */
  tunnel(head: Head, overheadMs: number): Duplex {
    this.#head(head, overheadMs, [])
    return this.#request.socket
  }

  destroy(): void {
    this.#request.socket.destroy()
  }

  #head({ status, headers }: Head, overheadMs: number, more: readonly string[]): void {
    const { id, socket } = this.#request
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

/** Returns a CONNECT request as authentication and the planes see it; its path is `<host>:<port>`. */
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

/** Moves `proxy-authorization` to `authorization`, where authentication reads every token. */
function withToken(headers: IncomingHttpHeaders, credentials: string | undefined): IncomingHttpHeaders {
  return credentials === undefined ? headers : { ...headers, authorization: bearerOf(credentials) }
}

const BASIC = /^basic +([A-Za-z0-9+/]+={0,2})$/i

/** Converts Basic credentials (RFC 7617), which browsers and most tools use for proxies, to Bearer: the password is the token. */
function bearerOf(credentials: string): string {
  const [, basic] = BASIC.exec(credentials) ?? []
  if (basic === undefined) return credentials
  const [, password] = /^[^:]*:(.*)$/s.exec(Buffer.from(basic, 'base64').toString('latin1')) ?? []
  return password === undefined ? credentials : `Bearer ${password}`
}

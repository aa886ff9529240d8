import { type IncomingHttpHeaders, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Clock } from '@plat/core'
import type { TunnelRequest } from '@plat/http'
import { deny, type Head, isDenial, type Reply, type WireRequest } from '../../call/index.ts'
import type { GovernedCall } from './call.ts'
import { aborted, abortedBy, type CallEnd, completed, failed, refused } from './call-abort.ts'
import type { Sink } from './exchange.ts'
import { ReviewChain } from './reviews.ts'

/** A tunnel in which nothing moves for this long is cut, in milliseconds. */
const TUNNEL_IDLE_MS = 10 * 60_000
/** No tunnel lives longer, in milliseconds. */
const TUNNEL_TOTAL_MS = 8 * 60 * 60_000

type TunnelReply = Extract<Reply, { kind: 'tunnel' }>

/** Joins the caller's connection with the upstream's until one of them ends, nothing moves any more, or the call is stopped. */
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
  // What ended well is closed already, but for a side that nobody listens to any more.
  caller.destroy()
  reply.socket.destroy()
  return ended === aborted ? abortedBy(call.abort) : ended
}

/** Resolves when both sides have closed, or one of them broke. The shared timer watches the deadlines. */
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
        // The other side may still have to take what was sent before; nothing that it says can be heard any more.
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

/** Both directions came to their end: nothing was lost. */
function hasEnded(side: Duplex): boolean {
  return side.readableEnded && side.writableFinished
}

/** A sink over a connection that asks to become a tunnel. What is refused is answered on it, and then it is closed. */
export class TunnelSink implements Sink {
  readonly #asked: TunnelRequest
  readonly #onGone: () => void
  headSent = false

  /** `onGone` is called when the caller left before there was an answer. */
  constructor(request: TunnelRequest, onGone: () => void) {
    this.#asked = request
    this.#onGone = onGone
    request.socket.once('close', onGone)
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

import type { Clock } from '@plat/core'
import { type Dialer, dialFault } from '@plat/http'
import {
  type Call,
  callerOf,
  type Denial,
  deny,
  type Frame,
  type Parsed,
  type Reply,
  type RequestContext,
  statusOf,
} from '../../call/index.ts'
import type { Plane } from '../../pipeline/plane.ts'
import { failure, plainRefusal } from '../wire/refusal.ts'

/** Time limit for connecting to a host, in milliseconds. */
const CONNECT_MS = 15_000
/** The port is required, even if it is the default of the scheme. */
const PORT = /:\d{1,5}$/
/** Longest host name of DNS, in characters. */
const MAX_HOST = 253

class ConnectTarget {
  /** `https://<host>:<port>`, whatever the protocol is; the host is in canonical form, as in lists. */
  readonly url: URL
  readonly port: number

  constructor(url: URL, port: number) {
    this.url = url
    this.port = port
  }

  get authority(): string {
    return `${this.url.hostname}:${this.port}`
  }
}

export interface ConnectPlaneOptions {
  /** Refuses addresses in private networks, except `web.allowedCIDRs`. */
  readonly dialer: Pick<Dialer, 'connect'>
  readonly clock: Clock
}

/** The plane of HTTP CONNECT (docs/spec/gateway.md, `egress`; RFC 9110, section 9.3.6): the host is the tool of the server `plat-egress`. */
export function createConnectPlane(options: ConnectPlaneOptions): Plane {
  return new ConnectPlane(options)
}

/** Returns the target of a call of this plane, or null when it was not read. */
export function placeOf({ wire: { note } }: Pick<Call, 'wire'>): URL | null {
  return note instanceof ConnectTarget ? note.url : null
}

class ConnectPlane implements Plane {
  readonly #dialer: ConnectPlaneOptions['dialer']
  readonly #clock: Clock

  constructor({ dialer, clock }: ConnectPlaneOptions) {
    this.#dialer = dialer
    this.#clock = clock
  }

  read({ wire }: RequestContext): Parsed | Denial {
    const place = placeIn(wire.path)
    if (place === null) return deny('invalid_request', 'the target of CONNECT must be <host>:<port>')
    wire.note = place
    const name = place.url.hostname
    return { operation: 'tunnel', method: 'CONNECT', server: 'plat-egress', name, body: null, parent: null }
  }

  async forward({ wire: { note }, facts: { identity } }: Call<'identity'>): Promise<Reply | Denial> {
    if (!(note instanceof ConnectTarget)) return deny('internal', 'the request was not read')
    const { authority } = note
    const started = this.#clock.monotonic()
    try {
      const socket = await this.#dialer.connect(new URL(`tcp://${authority}`), 'egress', {
        timeoutMs: CONNECT_MS,
        caller: callerOf(identity),
      })
      const attempts = [{ endpoint: authority, status: 200, ms: this.#clock.monotonic() - started }]
      return { kind: 'tunnel', head: { status: 200, headers: {} }, attempts, socket }
    } catch (error) {
      const ms = this.#clock.monotonic() - started
      return { ...unreached(note.url.hostname, error), attempts: [{ endpoint: authority, status: 0, ms }] }
    }
  }

  /** Returns null: a client cannot read anything before its tunnel opens. */
  keepAlive(): null {
    return null
  }

  /** Renders a refusal. A proxy requests credentials with `Proxy-Authenticate` (RFC 9110, section 11.7.1). */
  refuse(arrival: RequestContext, _: Parsed | null, denial: Denial): ReturnType<Plane['refuse']> {
    const isUnknown = statusOf(denial) === 401
    const { head, frame } = plainRefusal(arrival, isUnknown ? { ...denial, reason: hinted(denial) } : denial)
    const { 'www-authenticate': _challenge, ...headers } = head.headers
    if (!isUnknown) return { head: { ...head, headers }, frame }
    return { head: { status: 407, headers: { ...headers, 'proxy-authenticate': 'Basic realm="plat"' } }, frame }
  }

  /** Returns no frames: the protocol in the tunnel is not known. */
  abort(): readonly Frame[] {
    return []
  }

  encode({ raw }: Frame): Uint8Array {
    return raw ?? Buffer.alloc(0)
  }
}

/** Returns the target with its host in the canonical form of URLs, or null when it is invalid. */
function placeIn(authority: string): ConnectTarget | null {
  const url = PORT.test(authority) ? URL.parse(`https://${authority}/`) : null
  if (url === null || url.pathname !== '/' || url.host.length > MAX_HOST) return null
  if (url.username !== '' || url.search !== '' || url.hash !== '') return null
  const host = url.hostname.replace(/\.$/, '')
  if (host === '' || host.endsWith('.')) return null
  // A trailing dot denotes the DNS root, so the name without it is equivalent.
  url.hostname = host
  return new ConnectTarget(url, url.port === '' ? 443 : Number(url.port))
}

function unreached(host: string, error: unknown): Denial {
  if (dialFault(error) !== 'blocked') return failure(host, error)
  const reason = 'the host may not be reached: it leads inside a private network, which web.allowedCIDRs does not allow'
  return deny('policy_denied', reason)
}

function hinted({ reason, data }: Denial): string {
  const isUnread = data?.reason === 'missing' || data?.reason === 'malformed'
  const hint =
    'send the session token as the password of Proxy-Authorization: Basic, or as Proxy-Authorization: Bearer <token>'
  return isUnread ? hint : reason
}

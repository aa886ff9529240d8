import type { DetailedPeerCertificate, TLSSocket } from 'node:tls'
import { type Clock, parseSessionSpiffeId, type SessionName, whenReady } from '@plat/core'
import type { Counter } from '@plat/metrics'
import { type Denial, deny, type Identity, isDenial, type RequestContext } from '../../call/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'

/** Result of comparing a client certificate with the session of the token (`plat_gateway_svid_checks_total{result}`). */
export type SvidResult = 'match' | 'mismatch' | 'absent' | 'untrusted'

export interface SvidOptions {
  /** docs/spec/gateway.md: `tls.svidMode`. */
  readonly mode: 'off' | 'optional' | 'required'
  /** docs/spec/gateway.md: `tls.svidTrustDomains`; empty: any of the bundle. */
  readonly trustDomains: readonly string[]
  readonly clock: Clock
  readonly metrics: GatewayMetrics
}

type Authenticate = (arrival: RequestContext) => Identity | Denial | Promise<Identity | Denial>

/** The session proved by a connection's certificate, valid until `expiresAt` (milliseconds since the epoch). */
interface Svid {
  readonly session: SessionName
  readonly expiresAt: number
}

/** Maximum number of authorities above a leaf; longer chains are refused. */
const MAX_CHAIN = 8

/** Messages for the caller; only `absent` says that trying again with a certificate may help. */
const REASONS: Readonly<Record<Exclude<SvidResult, 'match'>, string>> = {
  absent: 'a client certificate with the SPIFFE ID of the session is required',
  untrusted: 'the client certificate is not an SVID of a trusted domain',
  mismatch: 'the client certificate belongs to another session than the token',
}

/**
 * Binds session tokens to the SVID of the connection (docs/spec/gateway.md, `tls.svidMode`): a presented certificate must chain to
 * the bundle and name the session of the token; `required` refuses calls without one. Returns `authenticate` unchanged when off.
 */
export function bindToSvid(authenticate: Authenticate, options: SvidOptions): Authenticate {
  if (options.mode === 'off') return authenticate
  const check = new SvidCheck(options)
  const judge = (identity: Identity | Denial, arrival: RequestContext) =>
    isDenial(identity) ? identity : (check.refusal(arrival, identity) ?? identity)
  return (arrival) => whenReady(authenticate(arrival), judge, arrival)
}

class SvidCheck {
  readonly #options: SvidOptions
  readonly #trusted: ReadonlySet<string>
  readonly #checks: Counter<'result'>
  /** Result for each connection: its certificate never changes. */
  readonly #known = new WeakMap<TLSSocket, Svid | 'absent' | 'untrusted'>()

  constructor(options: SvidOptions) {
    this.#options = options
    this.#trusted = new Set(options.trustDomains)
    this.#checks = options.metrics.counter('plat_gateway_svid_checks_total')
  }

  refusal({ wire }: RequestContext, identity: Identity): Denial | null {
    const result = this.#compare(socketOf(wire.body), identity)
    this.#checks.inc({ result })
    if (result === 'match' || (result === 'absent' && this.#options.mode === 'optional')) return null
    const message = REASONS[result]
    const challenge = `Bearer realm="plat", error="invalid_token", error_description="${message}"`
    return deny('unauthenticated', message, { data: { reason: 'binding', challenge } })
  }

  #compare(socket: TLSSocket | null, { trustDomain, namespace, agent, session }: Identity): SvidResult {
    if (socket === null) return 'absent'
    const svid = this.#known.get(socket) ?? this.#read(socket)
    if (svid === 'absent' || svid === 'untrusted') return svid
    if (svid.expiresAt <= this.#options.clock.now()) return 'untrusted'
    const named = svid.session
    // Names are unique within their trust domain only.
    if (named.trustDomain !== trustDomain) return 'mismatch'
    return named.namespace === namespace && named.agent === agent && named.session === session ? 'match' : 'mismatch'
  }

  #read(socket: TLSSocket): Svid | 'absent' | 'untrusted' {
    const svid = svidOf(socket, this.#trusted.size > 1)
    const domain = typeof svid === 'string' ? '' : svid.session.trustDomain
    const verdict = domain !== '' && this.#trusted.size > 0 && !this.#trusted.has(domain) ? 'untrusted' : svid
    this.#known.set(socket, verdict)
    return verdict
  }
}

/** The TLS connection that a body comes over; null for plain HTTP. */
function socketOf(body: object): TLSSocket | null {
  const socket = 'socket' in body ? body.socket : null
  return isTls(socket) ? socket : null
}

function isTls(socket: unknown): socket is TLSSocket {
  return typeof socket === 'object' && socket !== null && 'encrypted' in socket && 'getPeerX509Certificate' in socket
}

/** X509-SVID, sections 4 and 5: a leaf with exactly one URI, the SPIFFE ID, below an authority of the same trust domain. */
function svidOf(socket: TLSSocket, mustName: boolean): Svid | 'absent' | 'untrusted' {
  const leaf = socket.getPeerX509Certificate()
  if (leaf === undefined) return 'absent'
  // OpenSSL has verified the path, the dates and the purpose, against the bundle only.
  if (!socket.authorized || leaf.ca) return 'untrusted'
  const session = parseSessionSpiffeId(onlyUri(leaf.subjectAltName) ?? '')
  if (session === null || !isOfDomain(socket.getPeerCertificate(true), session.trustDomain, mustName))
    return 'untrusted'
  return { session, expiresAt: leaf.validToDate.getTime() }
}

/** Returns the URI if there is exactly one alternative name of that type. Node quotes names with a comma, so none can be forged. */
function onlyUri(names: string | undefined): string | null {
  const uris = (names ?? '').split(', ').filter((name) => name.startsWith('URI:'))
  return uris.length === 1 ? (uris[0]?.slice('URI:'.length) ?? null) : null
}

/**
 * Returns whether every authority above the leaf that names a trust domain names this one, so that with several domains none can issue for another.
 * `mustName`: at least one must name it, since an authority without a domain could otherwise issue for all of them.
 */
function isOfDomain(leaf: DetailedPeerCertificate, trustDomain: string, mustName: boolean): boolean {
  let below = leaf
  let isNamed = false
  for (let depth = 0; depth < MAX_CHAIN; depth++) {
    const above = below.issuerCertificate
    // A root is self-issued.
    if (above === undefined || above === below) return isNamed || !mustName
    const uri = onlyUri(above.subjectaltname)
    if (uri?.startsWith('spiffe://') && uri !== `spiffe://${trustDomain}`) return false
    isNamed ||= uri === `spiffe://${trustDomain}`
    below = above
  }
  return false
}

import type { Clock } from '@plat/core'
import { type ClientRequest, type Dialer, joinedBundles, type RequestHeaders, type TrustOptions } from '@plat/http'
import type { Log } from '@plat/process'
import type { BuiltinServer, Credential, Denial, Identity, UpstreamAuth } from '../../../call/index.ts'
import { UpstreamExchange } from '../../wire/exchange.ts'
import type { Sealer } from '../seal/seal.ts'
import type { AbandonedCalls } from './abandoned.ts'

/** How a server is reached. */
export interface McpUpstream {
  /** `<ns>/<name>`; a static upstream has its bare name. */
  readonly key: string
  readonly url: string
  /** Wait for response heads, and then for the whole of a JSON body; null: the gateway's default. */
  readonly timeoutSeconds: number | null
  /** PEM bundle trusted beside the system roots. */
  readonly caPEM: string | null
  /** docs/spec/crds.md, `protocolVersions`; null: not restricted. */
  readonly protocolVersions: readonly string[] | null
  /** What the gateway shows it. */
  readonly auth: UpstreamAuth
  /** Set: the gateway is the server itself, and nothing else here counts. */
  readonly builtin?: BuiltinServer | null
}

/** What the gateway shows its servers. */
export interface Credentials {
  /** A plain value when it is known; `upstream_credential` when there is none. */
  of(upstream: McpUpstream, identity: Identity): Credential | Denial | Promise<Credential | Denial>
  /** What to show instead of what the server has just refused; null: there is nothing else; a denial says what to do about it. */
  renewed(upstream: McpUpstream, identity: Identity, refused: Credential): Promise<Credential | Denial | null>
}

/** What forwarding needs beside the call. */
export interface Forwarder {
  readonly dialer: Pick<Dialer, 'client'>
  readonly credentials: Credentials
  readonly sealer: Sealer
  readonly clock: Clock
  readonly log: Log
  readonly upstreamTimeoutMs: number
  /** CA bundle for every server; null: none. */
  readonly extraCA: string | null
  readonly abandoned: AbandonedCalls
}

/** The parts of a URL that a request needs, and whom its connections believe. */
interface UpstreamAddress {
  readonly origin: string
  /** Path and query. */
  readonly path: string
  /** Undefined: the system's roots. One object for as long as it says the same: the dialer knows it again. */
  readonly trust: TrustOptions | undefined
  readonly clientCert: Credential['clientCert']
}

/** Taken apart once: an upstream lives as long as the registry that holds it, a certificate until it is replaced. */
const places = new WeakMap<McpUpstream, UpstreamAddress>()

function placeOf(upstream: McpUpstream, clientCert: Credential['clientCert'], extraCA: string | null): UpstreamAddress {
  const known = places.get(upstream)
  if (known !== undefined && known.clientCert === clientCert) return known
  const { protocol, host, pathname, search } = new URL(upstream.url)
  const caPEM = joinedBundles([upstream.caPEM, extraCA])
  const trusts = caPEM !== null || clientCert !== null
  const trust = { ...(caPEM !== null && { caPEM }), ...(clientCert !== null && { clientCert }) }
  // The origin stands in each record: joined, it lies in one piece, unlike the one that a URL tells.
  const origin = [protocol, host].join('//')
  const place = { origin, path: pathname + search, trust: trusts ? trust : undefined, clientCert }
  places.set(upstream, place)
  return place
}

/** Where a request goes, and what it shows there. */
export interface UpstreamRoute {
  readonly upstream: McpUpstream
  readonly credential: Credential
  /** Whose share of the connections it uses; absent: nobody's. */
  readonly caller?: string
}

/** Scheme, host and port of a server, as records name it. */
export function originOfUpstream({ extraCA }: Forwarder, { upstream, credential }: UpstreamRoute): string {
  return placeOf(upstream, credential.clientCert, extraCA).origin
}

/** How long a response head may take, and then a whole JSON body, in milliseconds. */
export function timeoutOf({ timeoutSeconds }: McpUpstream, defaultMs: number): number {
  return timeoutSeconds === null ? defaultMs : timeoutSeconds * 1000
}

/** Sends one request to a server. `headers` gets what the server is shown. */
export function openExchange(
  { dialer, extraCA, upstreamTimeoutMs }: Forwarder,
  { upstream, credential, caller }: UpstreamRoute,
  { method, headers, body }: Pick<ClientRequest, 'method' | 'body'> & { readonly headers: RequestHeaders },
): UpstreamExchange {
  const { origin, path, trust } = placeOf(upstream, credential.clientCert, extraCA)
  const client = dialer.client(origin, 'mcp', trust)
  Object.assign(headers, credential.headers)
  const headersTimeoutMs = timeoutOf(upstream, upstreamTimeoutMs)
  return new UpstreamExchange(client, { method, path, headers, body, headersTimeoutMs, pauseTimeoutMs: 0, caller })
}

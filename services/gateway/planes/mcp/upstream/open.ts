import type { Clock } from '@plat/core'
import { type ClientRequest, type Dialer, joinedBundles, type RequestHeaders, type TrustOptions } from '@plat/http'
import type { Log } from '@plat/process'
import type { BuiltinServer, Credential, Denial, Identity, UpstreamAuth } from '../../../call/index.ts'
import { UpstreamExchange } from '../../wire/exchange.ts'
import type { Sealer } from '../seal/seal.ts'
import type { AbandonedCalls } from './abandoned.ts'

/** How to connect to a server. */
export interface McpUpstream {
  /** `<ns>/<name>`; a static upstream has its bare name. */
  readonly key: string
  readonly url: string
  /** Time limit for the response head, and then for the whole JSON body; null: the gateway's default. */
  readonly timeoutSeconds: number | null
  /** PEM bundle trusted in addition to the system roots. */
  readonly caPEM: string | null
  /** docs/spec/crds.md, `protocolVersions`; null: not restricted. */
  readonly protocolVersions: readonly string[] | null
  /** How the gateway authenticates. */
  readonly auth: UpstreamAuth
  /** A server that the gateway implements. If set, all other members are ignored. */
  readonly builtin?: BuiltinServer | null
}

/** Credentials for servers. */
export interface Credentials {
  /** Returns the credential, as a plain value if cached; a denial `upstream_credential` when there is none. */
  of(upstream: McpUpstream, identity: Identity): Credential | Denial | Promise<Credential | Denial>
  /** Resolves to a newer credential than `refused`, which the server refused; null when there is none; a denial with instructions. */
  renewed(upstream: McpUpstream, identity: Identity, refused: Credential): Promise<Credential | Denial | null>
}

/** Dependencies of forwarding. */
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

/** Parts of a URL for requests, with the TLS trust roots of its connections. */
interface UpstreamAddress {
  readonly origin: string
  /** Path and query. */
  readonly path: string
  /** Undefined: the system roots. The object stays the same as long as its content does, since the dialer caches by it. */
  readonly trust: TrustOptions | undefined
  readonly clientCert: Credential['clientCert']
}

/** Parsed URLs. An entry is replaced when the client certificate changes. */
const addresses = new WeakMap<McpUpstream, UpstreamAddress>()

function addressOf(
  upstream: McpUpstream,
  clientCert: Credential['clientCert'],
  extraCA: string | null,
): UpstreamAddress {
  const known = addresses.get(upstream)
  if (known !== undefined && known.clientCert === clientCert) return known
  const { protocol, host, pathname, search } = new URL(upstream.url)
  const caPEM = joinedBundles([upstream.caPEM, extraCA])
  const trusts = caPEM !== null || clientCert !== null
  const trust = { ...(caPEM !== null && { caPEM }), ...(clientCert !== null && { clientCert }) }
  // Every record contains the origin: `join` makes a flat string, whereas that of a URL is a rope, which is slower to serialize.
  const origin = [protocol, host].join('//')
  const address = { origin, path: pathname + search, trust: trusts ? trust : undefined, clientCert }
  addresses.set(upstream, address)
  return address
}

/** The server and credential of a request. */
export interface UpstreamRoute {
  readonly upstream: McpUpstream
  readonly credential: Credential
  /** The caller whose share of the connections is used; absent: counted for no caller. */
  readonly caller?: string
}

/** Returns the scheme, host and port of a server, as in records. */
export function originOfUpstream({ extraCA }: Forwarder, { upstream, credential }: UpstreamRoute): string {
  return addressOf(upstream, credential.clientCert, extraCA).origin
}

/** Returns the time limit for a response head, and then for a whole JSON body, in milliseconds. */
export function timeoutOf({ timeoutSeconds }: McpUpstream, defaultMs: number): number {
  return timeoutSeconds === null ? defaultMs : timeoutSeconds * 1000
}

/** Sends one request to a server. Adds the credential to `headers`. */
export function openExchange(
  { dialer, extraCA, upstreamTimeoutMs }: Forwarder,
  { upstream, credential, caller }: UpstreamRoute,
  { method, headers, body }: Pick<ClientRequest, 'method' | 'body'> & { readonly headers: RequestHeaders },
): UpstreamExchange {
  const { origin, path, trust } = addressOf(upstream, credential.clientCert, extraCA)
  const client = dialer.client(origin, 'mcp', trust)
  Object.assign(headers, credential.headers)
  const headersTimeoutMs = timeoutOf(upstream, upstreamTimeoutMs)
  return new UpstreamExchange(client, { method, path, headers, body, headersTimeoutMs, pauseTimeoutMs: 0, caller })
}

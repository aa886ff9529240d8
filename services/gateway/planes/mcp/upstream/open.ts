import { createHash } from 'node:crypto'
import type { Clock } from '@plat/core'
import {
  type ClientRequest,
  type Dialer,
  dialFault,
  joinedBundles,
  type RequestHeaders,
  type TrustOptions,
} from '@plat/http'
import type { Log } from '@plat/process'
import {
  type BuiltinServer,
  type Credential,
  callerOf,
  callingAgentOf,
  type Denial,
  deny,
  type Identity,
  type UpstreamAuth,
  UpstreamError,
} from '../../../call/index.ts'
import { AbandonedError, UpstreamExchange, type UpstreamHead } from '../../wire/exchange.ts'
import { failure } from '../../wire/refusal.ts'
import { InvalidResponseError } from '../frames/response.ts'
import type { Sealer } from '../seal/seal.ts'
import type { McpTasks } from '../tasks/tasks.ts'
import type { AbandonedCalls } from './abandoned.ts'

/** How to connect to a server. */
export interface McpUpstream {
  /** `<ns>/<name>`; a static upstream has its bare name. */
  readonly key: string
  readonly url: string
  /** If true, it is reached over the socket of the stdio bridge. */
  readonly stdio?: boolean
  /** If true, a stdio bridge answers at `url`. */
  readonly stdioService?: boolean
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
  readonly reachability: Pick<ReachabilityLog, 'reached' | 'failed'>
  /** docs/spec/gateway.md: `upstreamTimeoutSeconds`, in milliseconds. */
  readonly upstreamTimeoutMs: number
  /** docs/spec/gateway.md: the PEM of `upstreamCAFile`; null when empty. Trusted for every server, in addition to its own bundle. */
  readonly extraCA: string | null
  readonly abandoned: AbandonedCalls
  readonly tasks: Pick<McpTasks, 'notified'>
  /** Socket of the stdio bridge; null: there is none. */
  readonly stdioSocket: string | null
  readonly stdioReady: StdioReady
}

/** Returns null if the stdio bridge listens; otherwise resolves to null once it does, or after `ms` to why it does not. Never rejects. */
export type StdioReady = (ms: number) => null | Promise<string | null>

/**
 * Waits within the time limit of a server until the bridge that runs it listens. Returns null if it does, or the denial of a call that cannot be
 * made.
 */
export function whenStdioReady(
  { stdioReady, upstreamTimeoutMs }: Pick<Forwarder, 'stdioReady' | 'upstreamTimeoutMs'>,
  upstream: McpUpstream,
  server: string,
): null | Promise<Denial | null> {
  const waiting = upstream.stdio === true ? stdioReady(timeoutOf(upstream, upstreamTimeoutMs)) : null
  if (waiting === null) return null
  return waiting.then((problem) =>
    problem === null
      ? null
      : deny('upstream_error', `${server}: the bridge of stdio servers does not run: ${problem}`, {
          retryAfterMs: BRIDGE_RETRY_MS,
        }),
  )
}

/** Time after which a call may find the bridge running, in milliseconds. */
const BRIDGE_RETRY_MS = 1_000

/** Header by which the stdio bridge states why a call failed, percent-encoded. */
const STDIO_REASON = 'plat-stdio-reason'
const STDIO_REASON_MAX_CHARS = 512

/** Returns why the stdio bridge could not make a call; null if it made it. Another server cannot state a reason. */
export function stdioFailure(server: string, upstream: McpUpstream, { status, headers }: UpstreamHead): Denial | null {
  const encoded = headers[STDIO_REASON]
  if (!hasBridge(upstream) || status < 500 || typeof encoded !== 'string') return null
  const seconds = Number(headers['retry-after'] ?? Number.NaN)
  const retryAfterMs = Number.isFinite(seconds) ? seconds * 1000 : null
  const reason = decoded(encoded).slice(0, STDIO_REASON_MAX_CHARS)
  return deny('upstream_error', `${server}: ${reason}`, retryAfterMs === null ? {} : { retryAfterMs })
}

/** Returns whether plat's bridge of stdio servers answers for a server. */
function hasBridge({ stdio, stdioService }: McpUpstream): boolean {
  return stdio === true || stdioService === true
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return 'the call failed'
  }
}

/** The caller as the stdio bridge knows it, which gives each session a separate process: opaque, and the same for each call of a session. */
function callerHeaders(identity: Identity): RequestHeaders {
  return {
    'plat-stdio-agent': digestOf(callingAgentOf(identity)),
    'plat-stdio-session': digestOf(callerOf(identity)),
  }
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
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
  { extraCA, stdioSocket }: Pick<Forwarder, 'extraCA' | 'stdioSocket'>,
): UpstreamAddress {
  const known = addresses.get(upstream)
  if (known !== undefined && known.clientCert === clientCert) return known
  const { protocol, host, pathname, search } = new URL(upstream.url)
  const caPEM = joinedBundles([upstream.caPEM, extraCA])
  const socketPath = upstream.stdio === true ? stdioSocket : null
  const trusts = caPEM !== null || clientCert !== null || socketPath !== null
  const trust = {
    ...(caPEM !== null && { caPEM }),
    ...(clientCert !== null && { clientCert }),
    ...(socketPath !== null && { socketPath }),
  }
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
  /** A stdio server may run for this caller alone. */
  readonly identity: Identity
}

/** Returns the scheme, host and port of a server, as in records. */
export function originOfUpstream(
  forwarder: Forwarder,
  { upstream, credential }: Pick<UpstreamRoute, 'upstream' | 'credential'>,
): string {
  return addressOf(upstream, credential.clientCert, forwarder).origin
}

/** Returns the time limit for a response head, and then for a whole JSON body, in milliseconds. */
export function timeoutOf({ timeoutSeconds }: McpUpstream, defaultMs: number): number {
  return timeoutSeconds === null ? defaultMs : timeoutSeconds * 1000
}

/** Sends one request to a server. Adds the credential to `headers`. */
export function openExchange(
  forwarder: Forwarder,
  { upstream, credential, caller, identity }: UpstreamRoute,
  { method, headers, body }: Pick<ClientRequest, 'method' | 'body'> & { readonly headers: RequestHeaders },
): UpstreamExchange {
  const { dialer, upstreamTimeoutMs } = forwarder
  const { origin, path, trust } = addressOf(upstream, credential.clientCert, forwarder)
  const client = dialer.client(origin, 'mcp', trust)
  Object.assign(headers, credential.headers)
  if (hasBridge(upstream)) Object.assign(headers, callerHeaders(identity))
  const headersTimeoutMs = timeoutOf(upstream, upstreamTimeoutMs)
  return new UpstreamExchange(client, { method, path, headers, body, headersTimeoutMs, pauseTimeoutMs: 0, caller })
}

export function unusableResponse(server: string): Denial {
  return deny('upstream_error', `${server} sent a response that is not a JSON-RPC message`)
}

/** Returns the denial for a failure of the upstream. Rethrows other errors, which are bugs; the runner logs them. */
export function faultOf(server: string, error: unknown): Denial {
  if (error instanceof InvalidResponseError || error instanceof AbandonedError)
    return deny('upstream_error', `${server}: ${error.message}`)
  if (error instanceof UpstreamError) return failure(server, error)
  throw error
}

/** Faults before a request is sent, which no caller causes. */
const REASONS = {
  refused: 'it does not accept connections',
  name: 'its address cannot be resolved',
  blocked: 'its address must not be connected to',
  residency: 'its address is where data must not go',
  tls: 'its certificate is not accepted',
} as const

/** Logs that a server cannot be reached, and that it can be again: one line for each change, however many calls are made. */
export class ReachabilityLog {
  readonly #log: Log
  /** Reasons by the key of the server: as many as are configured. */
  readonly #unreachable = new Map<string, keyof typeof REASONS>()

  constructor(log: Log) {
    this.#log = log
  }

  /** Returns why a server cannot be reached, or null. */
  reasonOf(server: string): string | null {
    const fault = this.#unreachable.get(server)
    return fault === undefined ? null : REASONS[fault]
  }

  /** Called for every response of a server. */
  reached(server: string): void {
    if (this.#unreachable.size === 0 || !this.#unreachable.delete(server)) return
    this.#log.info({ server, recovered: true }, 'the server can be reached again')
  }

  /** Called for every request that failed; other failures than those to reach the server change nothing. */
  failed(server: string, error: unknown): void {
    const fault = dialFault(error instanceof UpstreamError ? error.cause : error)
    if (!isReason(fault) || this.#unreachable.get(server) === fault) return
    this.#unreachable.set(server, fault)
    this.#log.warn({ server, reason: REASONS[fault] }, 'the server cannot be reached: its calls fail')
  }
}

function isReason(fault: string): fault is keyof typeof REASONS {
  return Object.hasOwn(REASONS, fault)
}

import type { Clock, PoolObservers } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Log } from '@plat/process'
import {
  type Call,
  type Credential,
  type Denial,
  deny,
  type Frame,
  type Identity,
  isDenial,
  type Parsed,
  type Reply,
  type RequestContext,
  type Snapshot,
  type WireRequest,
} from '../../call/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'
import type { Plane } from '../../pipeline/plane.ts'
import { hasLengthUpTo, header, STREAM_HEADERS } from '../wire/headers.ts'
import { member } from '../wire/json.ts'
import { KeepAliveEvents, refusal, takesStream, terminalError } from './answer.ts'
import { answerBuiltin, shownTools } from './builtin/answer.ts'
import { spokenRevisions } from './capabilities.ts'
import { KNOWN_REVISIONS } from './classify.ts'
import { idOf, type McpRequest } from './message.ts'
import { type Reader, read } from './read.ts'
import type { Sealed, Sealer } from './seal/seal.ts'
import { type AbandonedCalls, createAbandonedCalls } from './upstream/abandoned.ts'
import { Forwarding, type McpForward } from './upstream/forward.ts'
import type { Credentials, Forwarder, McpUpstream } from './upstream/open.ts'
import { listTools } from './upstream/tools.ts'

export { createListReview, createPinReview } from './frames/list-review.ts'
export { createMessageRedactReview } from './redact/review.ts'
export { mcpTexts } from './redact/texts.ts'
export { loadSealKeys } from './seal/key.ts'
export { bindingOf, createSealer, type Sealer } from './seal/seal.ts'
export type { McpUpstream } from './upstream/open.ts'

/** What ends work that is under way; `DELETE` ends a session. */
const ENDING_METHODS: ReadonlySet<string> = new Set(['DELETE', 'notifications/cancelled', 'resources/unsubscribe'])
/** A longer body is no cancellation; in bytes. */
const ENDING_MAX_BYTES = 2048

/** Where the plane finds servers. */
export interface Upstreams {
  /** By `target.key`; null: it is gone from the snapshot. */
  upstream(snapshot: Snapshot, key: string): McpUpstream | null
  /** As this caller would reach it by name, whether or not it has the scope; null: not at all. */
  named(snapshot: Snapshot, identity: Identity, server: string): McpUpstream | null
}

export interface McpPlaneOptions {
  readonly upstreams: Upstreams
  readonly dialer: Pick<Dialer, 'client'>
  readonly credentials: Credentials
  readonly sealer: Sealer
  readonly clock: Clock
  readonly log: Log
  /** docs/spec/gateway.md: `maxBodyBytes`. */
  readonly maxBodyBytes: number
  /** docs/spec/gateway.md: `bodyReadTimeoutSeconds`, in milliseconds. */
  readonly bodyReadTimeoutMs: number
  /** docs/spec/gateway.md: `upstreamTimeoutSeconds`, in milliseconds. */
  readonly upstreamTimeoutMs: number
  /** docs/spec/gateway.md: `upstreamCAFile`, its PEM; null when empty. Trusted for every server, beside its own bundle. */
  readonly extraCA: string | null
  /** docs/spec/gateway.md: `corsOrigins`. A request with any other `Origin` is refused. */
  readonly origins: ReadonlySet<string>
  /** docs/spec/gateway.md: `identity.resourceBaseURL`; null when empty. */
  readonly resourceBaseURL: string | null
  readonly metrics: GatewayMetrics
  readonly pools?: PoolObservers<'abandoned_calls'>
}

/** A plane that can also ask a server for itself. */
export interface RequestingPlane extends Plane {
  /** The tools that the call's server offers its caller, all pages. Numbers keep their source text. Never rejects. */
  listTools(call: Call<'identity' | 'target'>): Promise<readonly unknown[] | Denial>
}

/** The plane of `/mcp/<name>`: MCP over Streamable HTTP, revisions 2025-03-26 to 2026-07-28, relayed and never translated. */
export function createMcpPlane(options: McpPlaneOptions): RequestingPlane {
  return new McpPlane(options)
}

class McpPlane implements RequestingPlane, Reader, Forwarder {
  readonly dialer: Forwarder['dialer']
  readonly credentials: Credentials
  readonly sealer: Sealer
  readonly clock: Clock
  readonly log: Log
  readonly maxBodyBytes: number
  readonly bodyReadTimeoutMs: number
  readonly upstreamTimeoutMs: number
  readonly extraCA: string | null
  readonly origins: ReadonlySet<string>
  readonly #upstreams: Upstreams
  readonly #resourceBaseURL: string | null
  readonly #cancellations = new Cancellations()
  readonly abandoned: AbandonedCalls

  constructor(options: McpPlaneOptions) {
    this.dialer = options.dialer
    this.credentials = options.credentials
    this.sealer = options.sealer
    this.clock = options.clock
    this.log = options.log
    this.maxBodyBytes = options.maxBodyBytes
    this.bodyReadTimeoutMs = options.bodyReadTimeoutMs
    this.upstreamTimeoutMs = options.upstreamTimeoutMs
    this.extraCA = options.extraCA
    this.origins = options.origins
    this.#upstreams = options.upstreams
    this.#resourceBaseURL = options.resourceBaseURL
    this.abandoned = createAbandonedCalls(options)
  }

  read(arrival: RequestContext, identity: Identity): Parsed | Denial | Promise<Parsed | Denial> {
    return read(this, arrival, identity)
  }

  forward(call: Call<'identity' | 'target' | 'hold'>, head: 'unsent' | 'sent'): Denial | Promise<Reply | Denial> {
    const request = noted(call.wire)
    const upstream = this.#upstreams.upstream(call.snapshot, call.facts.target.key)
    if (request === undefined) return deny('internal', 'the request was not read')
    if (upstream === null) return deny('unknown_server', `no server named ${call.server}`)
    if (leadsElsewhere(request, call.facts.target.key)) return deny('unknown_session', 'no such session')
    this.#cancellations.over(call.wire)
    if (request.method === 'notifications/cancelled') this.#cancellations.cancelled(call, request)
    const sent = head === 'sent'
    const server = upstream.builtin ?? null
    if (server !== null) return answerBuiltin({ server, call, request, sent })
    const credential = this.credentials.of(upstream, call.facts.identity)
    if (credential instanceof Promise) {
      return credential.then((fetched) => this.#forward(fetched, { call, request, upstream, sent }))
    }
    return this.#forward(credential, { call, request, upstream, sent })
  }

  #forward(credential: Credential | Denial, passage: McpForward): Denial | Promise<Reply | Denial> {
    return isDenial(credential) ? credential : new Forwarding(this, passage, credential).run()
  }

  async listTools(call: Call<'identity' | 'target'>): Promise<readonly unknown[] | Denial> {
    const request = noted(call.wire)
    const upstream = this.#upstreams.upstream(call.snapshot, call.facts.target.key)
    if (request === undefined || upstream === null) return deny('unknown_server', `no server named ${call.server}`)
    if (upstream.builtin)
      return shownTools(upstream.builtin, { identity: call.facts.identity, snapshot: call.snapshot })
    const { identity } = call.facts
    const credential = await this.credentials.of(upstream, identity)
    if (isDenial(credential)) return credential
    const listed = await listTools(this, { call, request, upstream, credential })
    if (!isDenial(listed) || listed.code !== 'upstream_credential') return listed
    const renewed = await this.credentials.renewed(upstream, identity, credential)
    if (renewed === null || isDenial(renewed)) return renewed ?? listed
    return listTools(this, { call, request, upstream, credential: renewed })
  }

  endsWork({ wire: { method, headers } }: RequestContext, parsed: Parsed | null): boolean {
    if (parsed !== null) return ENDING_METHODS.has(parsed.method)
    if (method !== 'POST') return ENDING_METHODS.has(method)
    // Clients of 2026-07-28 name the method in the head as well.
    const named = header(headers, 'mcp-method')
    return hasLengthUpTo(headers, ENDING_MAX_BYTES) && (named === null || ENDING_METHODS.has(named))
  }

  keepAlive(call: Call<'identity'>, approvalId: string, leave: () => void): ReturnType<Plane['keepAlive']> {
    const request = noted(call.wire)
    if (request === undefined || request.kind !== 'request' || !takesStream(call)) return null
    this.#cancellations.held(call, request, leave)
    const beats = new KeepAliveEvents(request, approvalId)
    return { head: { status: 200, headers: STREAM_HEADERS }, heartbeat: () => beats.next() }
  }

  refuse(arrival: RequestContext, _: Parsed | null, denial: Denial): ReturnType<Plane['refuse']> {
    return refusal(arrival, noted(arrival.wire) ?? null, denial, this.#resourceBaseURL)
  }

  abort(call: Call, denial: Denial): readonly Frame[] {
    this.#cancellations.over(call.wire)
    return [terminalError(call.id, noted(call.wire) ?? null, denial)]
  }

  /** Frames of this plane carry their bytes; only what others made has none, and stands for a JSON body. */
  encode(frame: Frame): Uint8Array {
    return frame.raw ?? Buffer.from(JSON.stringify(frame.value))
  }

  spoken({ snapshot }: RequestContext, identity: Identity, server: string): readonly string[] {
    const spoken = spokenRevisions(this.#upstreams.named(snapshot, identity, server)?.protocolVersions)
    // A caller without the scope learns nothing of the server; the refusal comes from the stages.
    return spoken === KNOWN_REVISIONS || identity.scopes.has(`tools:${server}`) ? spoken : KNOWN_REVISIONS
  }

  remember(arrival: RequestContext, request: McpRequest): void {
    arrival.wire.note = new CallNote(request)
  }
}

/** Whether something under seal came from another server than the one that the name leads to now. */
function leadsElsewhere({ session, lastEvent, opened }: McpRequest, key: string): boolean {
  const elsewhere = (sealed: Sealed | null) => sealed !== null && sealed.target !== key
  return elsewhere(session) || elsewhere(lastEvent) || opened.some(elsewhere)
}

/** What was read of a request, kept with it. A `WeakMap` would make the collector carry half of all requests along. */
class CallNote {
  readonly request: McpRequest

  constructor(request: McpRequest) {
    this.request = request
  }
}

/** Undefined for a request that was not read. */
function noted({ note }: WireRequest): McpRequest | undefined {
  return note instanceof CallNote ? note.request : undefined
}

/**
 * Held requests that their client can cancel. Clients of revisions before 2026-07-28 give up by a notification and keep
 * the connection open, so without this a call that nobody waits for any more would still use an approval.
 */
export class Cancellations {
  /** Entries live as long as the wait of a live call, so the cap on live calls is theirs. */
  readonly #leave = new Map<string, () => void>()
  readonly #keys = new WeakMap<WireRequest, string>()

  /** The call waits for a person from now on. */
  held(call: Call<'identity'>, request: McpRequest, leave: () => void): void {
    const id = idOf(request)
    if (id === null) return
    const key = keyOf(call, request, JSON.parse(Buffer.from(id).toString('utf8')))
    this.#keys.set(call.wire, key)
    this.#leave.set(key, leave)
    call.signal.addEventListener('abort', () => this.over(call.wire), { once: true })
  }

  /** The call does not wait any more: from now on a cancellation is for the upstream. */
  over(wire: WireRequest): void {
    const key = this.#leave.size === 0 ? undefined : this.#keys.get(wire)
    if (key === undefined) return
    this.#keys.delete(wire)
    this.#leave.delete(key)
  }

  /** `notifications/cancelled`: ends the wait of the request that it names, if it is held. */
  cancelled(call: Call<'identity'>, notification: McpRequest): void {
    if (this.#leave.size === 0) return
    const id = member(member(call.body?.value, 'params'), 'requestId')
    this.#leave.get(keyOf(call, notification, id))?.()
  }
}

/** Request ids count within one client: the session here, the server, and the server's session where there is one. */
function keyOf({ facts, server }: Call<'identity'>, { session }: McpRequest, id: unknown): string {
  const { tenant, namespace, agent, session: name } = facts.identity
  return JSON.stringify([tenant, namespace, agent, name, server, session?.id ?? null, id])
}

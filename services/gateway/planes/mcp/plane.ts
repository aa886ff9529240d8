import { type Clock, whenReady } from '@plat/core'
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
  type WireRequest,
} from '../../call/index.ts'
import type { Plane } from '../../pipeline/plane.ts'
import { hasLengthUpTo, header, STREAM_HEADERS } from '../wire/message.ts'
import type { Progress } from '../wire/refusal-text.ts'
import {
  KeepAliveEvents,
  type RefusalForm,
  type RefusedRequest,
  refusal,
  takesStream,
  terminalRefusal,
} from './answer.ts'
import { answerBuiltin, visibleTools } from './builtin/answer.ts'
import { Cancellations } from './cancellations.ts'
import { spokenRevisions } from './capabilities.ts'
import { KNOWN_REVISIONS } from './classify.ts'
import { type McpRequest, progressTokenOf } from './message.ts'
import type { McpPlaneOptions, RequestingPlane, ServerPlane, TaskPlane, Upstreams } from './options.ts'
import { read } from './read.ts'
import type { Sealed, Sealer } from './seal/seal.ts'
import { createTaskReview } from './tasks/review.ts'
import { type AbandonedCalls, createAbandonedCalls } from './upstream/abandoned.ts'
import { cancelAt } from './upstream/cancel.ts'
import { Forwarding, type McpForward } from './upstream/forward.ts'
import { type Credentials, type Forwarder, ReachabilityLog, whenStdioReady } from './upstream/open.ts'
import { listTools } from './upstream/tools.ts'

/** Methods that end other work; `DELETE` ends a session. */
const ENDING_METHODS: ReadonlySet<string> = new Set(['DELETE', 'notifications/cancelled', 'resources/unsubscribe'])
/** Largest body of a request that ends work, in bytes. */
const ENDING_MAX_BYTES = 2048

export interface ReachabilityView {
  /** Why the last request to a server (`McpUpstream.key`) could not be sent; null: it could, or none was made. */
  unreachable(server: string): string | null
}

/** The plane of `/mcp/<name>`: MCP over Streamable HTTP, revisions 2025-03-26 to 2026-07-28. Messages are not translated between revisions. */
export function createMcpPlane(options: McpPlaneOptions): RequestingPlane & ServerPlane & TaskPlane & ReachabilityView {
  return new McpPlane(options)
}

class McpPlane implements RequestingPlane, ServerPlane, TaskPlane, ReachabilityView, Forwarder {
  readonly dialer: Forwarder['dialer']
  readonly credentials: Credentials
  readonly sealer: Sealer
  readonly clock: Clock
  readonly log: Forwarder['log']
  readonly reachability: ReachabilityLog
  readonly maxBodyBytes: number
  readonly bodyReadTimeoutMs: number
  readonly upstreamTimeoutMs: number
  readonly extraCA: string | null
  readonly stdioSocket: string | null
  readonly stdioReady: Forwarder['stdioReady']
  readonly origins: ReadonlySet<string>
  readonly #upstreams: Upstreams
  readonly #resourceBaseURL: string | null
  readonly #clientOf: McpPlaneOptions['clientOf']
  readonly #cancellations = new Cancellations()
  readonly abandoned: AbandonedCalls
  readonly tasks: McpPlaneOptions['tasks']
  readonly taskReview: TaskPlane['taskReview']

  constructor(options: McpPlaneOptions) {
    this.dialer = options.dialer
    this.credentials = options.credentials
    this.sealer = options.sealer
    this.clock = options.clock
    this.log = options.log
    this.reachability = new ReachabilityLog(options.log)
    this.maxBodyBytes = options.maxBodyBytes
    this.bodyReadTimeoutMs = options.bodyReadTimeoutMs
    this.upstreamTimeoutMs = options.upstreamTimeoutMs
    this.extraCA = options.extraCA
    this.stdioSocket = options.stdioSocket
    this.stdioReady = options.stdioReady
    this.origins = options.origins
    this.#upstreams = options.upstreams
    this.#resourceBaseURL = options.resourceBaseURL
    this.#clientOf = options.clientOf
    this.abandoned = createAbandonedCalls(options)
    this.tasks = options.tasks
    this.taskReview = createTaskReview({
      tasks: options.tasks,
      requestOf: (wire) => noted(wire),
      cancel: ({ snapshot }, task, owner) => this.cancelTask(snapshot, task, owner),
    })
  }

  unreachable(server: string): string | null {
    return this.reachability.reasonOf(server)
  }

  read(arrival: RequestContext, identity: Identity): Parsed | Denial | Promise<Parsed | Denial> {
    return read(this, arrival, identity)
  }

  forward(call: Call<'identity' | 'target' | 'hold'>, head: 'unsent' | 'sent'): Denial | Promise<Reply | Denial> {
    const note = noteOf(call.wire)
    const upstream = this.#upstreams.upstream(call.snapshot, call.facts.target.key)
    if (note === undefined) return deny('internal', 'the request was not read')
    const { request } = note
    if (upstream === null) return deny('unknown_server', `no server named ${call.server}`)
    if (leadsElsewhere(request, call.facts.target.key)) return deny('unknown_session', 'no such session')
    this.#cancellations.over(call.wire)
    this.leaveHeld(call, request)
    const sent = head === 'sent'
    const server = upstream.builtin ?? null
    note.progress = server === null || server.isRemote === true ? 'upstream' : 'builtin'
    if (server !== null) return answerBuiltin({ server, call, request, sent })
    const credential = this.credentials.of(upstream, call.facts.identity)
    return whenReady(credential, forwarded, this, { call, request, upstream, sent })
  }

  cancelTask(...[snapshot, task, owner]: Parameters<TaskPlane['cancelTask']>): Promise<boolean> {
    return cancelAt(this, { upstream: this.#upstreams.upstream(snapshot, task.target), task, owner })
  }

  taskOf(
    { snapshot }: RequestContext,
    { identity, server }: { readonly identity: Identity; readonly server: string },
    id: string,
  ): ReturnType<ServerPlane['taskOf']> {
    const key = this.#upstreams.named(snapshot, identity, server)?.key
    return key === undefined ? null : this.tasks.find(identity, key, id)
  }

  catchUpTasks(identity: Identity): Promise<void> | null {
    return this.tasks.catchUp(identity)
  }

  taskSession(...[task, owner]: Parameters<ServerPlane['taskSession']>): Sealed | null {
    return this.tasks.sessionOf(task, owner)
  }

  requestOf(wire: WireRequest): McpRequest | undefined {
    return noted(wire)
  }

  useSession(wire: WireRequest, session: Sealed | null, revision: string): void {
    const note = noteOf(wire)
    if (note !== undefined) note.request = { ...note.request, session, revision }
  }

  leaveHeld(call: Call<'identity'>, request: McpRequest): void {
    if (request.method === 'notifications/cancelled') this.#cancellations.cancelled(call, request)
    else if (request.kind === 'end') this.#cancellations.ended(call, request)
  }

  async listTools(call: Call<'identity' | 'target'>): Promise<readonly unknown[] | Denial> {
    const request = noted(call.wire)
    const upstream = this.#upstreams.upstream(call.snapshot, call.facts.target.key)
    if (request === undefined || upstream === null) return deny('unknown_server', `no server named ${call.server}`)
    if (upstream.builtin)
      return visibleTools(upstream.builtin, { identity: call.facts.identity, snapshot: call.snapshot })
    const { identity } = call.facts
    const credential = await this.credentials.of(upstream, identity)
    if (isDenial(credential)) return credential
    const listed = await listTools(this, { call, request, upstream, credential, identity })
    if (!isDenial(listed) || listed.code !== 'upstream_credential') return listed
    const renewed = await this.credentials.renewed(upstream, identity, credential)
    if (renewed === null || isDenial(renewed)) return renewed ?? listed
    return listTools(this, { call, request, upstream, credential: renewed, identity })
  }

  endsWork({ wire: { method, headers } }: RequestContext, parsed: Parsed | null): boolean {
    if (parsed !== null) return ENDING_METHODS.has(parsed.method)
    if (method !== 'POST') return ENDING_METHODS.has(method)
    // Clients of revision 2026-07-28 also send the method in a header.
    const named = header(headers, 'mcp-method')
    return hasLengthUpTo(headers, ENDING_MAX_BYTES) && (named === null || ENDING_METHODS.has(named))
  }

  /** Clients of `tools/call` give up after a few seconds, unless they requested progress notifications, which they then receive. */
  pause(call: Call<'identity'>, leave: () => void): number | null {
    const request = noted(call.wire)
    if (request === undefined || request.kind !== 'request') return null
    this.#cancellations.held(call, request, leave)
    if (request.method !== 'tools/call' || (progressTokenOf(request) !== null && takesStream(call))) return null
    return this.#clientOf(call.snapshot, call.facts.identity).answerAfterMs
  }

  keepAlive(call: Call<'identity'>, approvalId: string): ReturnType<Plane['keepAlive']> {
    const request = noted(call.wire)
    if (request === undefined || request.kind !== 'request' || !takesStream(call)) return null
    const beats = new KeepAliveEvents(request, approvalId)
    return { head: { status: 200, headers: STREAM_HEADERS }, heartbeat: () => beats.next() }
  }

  /** A message that was not accepted as a call (`parsed` is null) is refused with an error, as malformed requests are. */
  refuse(arrival: RequestContext, parsed: Parsed | null, denial: Denial): ReturnType<Plane['refuse']> {
    const refused = this.#refused(arrival)
    const asRead: RefusedRequest = parsed === null ? { ...refused, form: 'error' } : refused
    return refusal(arrival, asRead, denial, this.#resourceBaseURL)
  }

  abort(call: Call, denial: Denial): readonly Frame[] {
    this.#cancellations.over(call.wire)
    return [terminalRefusal(this.#refused(call), denial)]
  }

  #refused({ id: decisionId, wire, snapshot }: RequestContext): RefusedRequest {
    const now = this.clock.now()
    const note = noteOf(wire)
    if (note === undefined) return { decisionId, request: null, form: 'error', progress: 'unsent', now }
    const { request, caller, progress } = note
    const form = statedForm(wire) ?? this.#clientOf(snapshot, caller).refusals
    return { decisionId, request, form, progress, now }
  }

  /** Frames of this plane have their bytes; a frame without bytes was created elsewhere and is a JSON body. */
  encode(frame: Frame): Uint8Array {
    return frame.raw ?? Buffer.from(JSON.stringify(frame.value))
  }

  nameOf({ snapshot }: RequestContext, identity: Identity, name: string): string {
    return this.#upstreams.nameOf(snapshot, identity, name)
  }

  revisions({ snapshot }: RequestContext, identity: Identity, server: string): readonly string[] {
    const revisions = spokenRevisions(this.#upstreams.protocolVersions(snapshot, identity, server))
    // A caller without the scope must not learn anything about the server; a stage refuses its request.
    return revisions === KNOWN_REVISIONS || identity.scopes.has(`tools:${server}`) ? revisions : KNOWN_REVISIONS
  }

  remember(arrival: RequestContext, request: McpRequest, caller: Identity): void {
    arrival.wire.note = new CallNote(request, caller)
  }
}

function forwarded(
  credential: Credential | Denial,
  plane: Forwarder,
  context: McpForward,
): Denial | Promise<Reply | Denial> {
  if (isDenial(credential)) return credential
  const run = (denial: Denial | null) => denial ?? new Forwarding(plane, context, credential).run()
  const starting = whenStdioReady(plane, context.upstream, context.call.server)
  return starting === null ? run(null) : untilAborted(starting, context.call.signal).then(run)
}

/** Resolves to a denial as soon as the call is aborted, which the caller does not get. */
function untilAborted(waiting: Promise<Denial | null>, signal: Call['signal']): Promise<Denial | null> {
  const over = Promise.withResolvers<Denial>()
  const abort = () => over.resolve(deny('upstream_error', 'the call was aborted'))
  if (signal.aborted) abort()
  else signal.addEventListener('abort', abort)
  return Promise.race([waiting, over.promise]).finally(() => signal.removeEventListener('abort', abort))
}

/** Returns true when a task or a sealed value was issued for another server than the one to which the name resolves now. */
function leadsElsewhere({ session, lastEvent, opened, task }: McpRequest, key: string): boolean {
  if (task !== undefined && task.task.target !== key) return true
  const elsewhere = (sealed: Sealed | null) => sealed !== null && sealed.target !== key
  return elsewhere(session) || elsewhere(lastEvent) || opened.some(elsewhere)
}

/** The parsed request, stored in `wire.note`. With a `WeakMap`, half of all requests would survive minor garbage collections. */
class CallNote {
  request: McpRequest
  readonly caller: Identity
  progress: Progress = 'unsent'

  constructor(request: McpRequest, caller: Identity) {
    this.request = request
    this.caller = caller
  }
}

function noteOf({ note }: WireRequest): CallNote | undefined {
  return note instanceof CallNote ? note : undefined
}

/** Returns the parsed request, or undefined for a request that was not read. */
function noted(wire: WireRequest): McpRequest | undefined {
  return noteOf(wire)?.request
}

/** Returns the form of refusals that this request selects, whatever its agent's is; null: none. */
function statedForm({ headers }: WireRequest): RefusalForm | null {
  const stated = header(headers, 'x-plat-refusals')
  return stated === 'result' || stated === 'error' ? stated : null
}

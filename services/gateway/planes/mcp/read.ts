import type { IncomingHttpHeaders } from 'node:http'
import { isObject, type JsonObject, member } from '@plat/core'
import type { OwnedTask } from '../../call/bindings/bindings.ts'
import {
  type Denial,
  deny,
  type Identity,
  isDenial,
  type Parsed,
  type RequestContext,
  type TraceContext,
} from '../../call/index.ts'
import { type BodyLimits, header, strictMessage, useJsonBytes } from '../wire/message.ts'
import { unseenPaths, withheldPaths } from './capabilities.ts'
import { isModernRevision, KNOWN_REVISIONS, type MethodRow, methodRow, serverName } from './classify.ts'
import { NOTHING_SEALED, openMessage, type Unsealer } from './frames/seals.ts'
import { checkMeta, checkMirrors, checkParameters, claimedVersion, unsupported } from './headers.ts'
import { McpBody, type McpRequest, originOf, type SharedRequest } from './message.ts'
import { bindingOf, type Origin, type Sealed, type Sealer, type SealKind } from './seal/seal.ts'
import { withoutServer } from './shared/naming.ts'
import { aboutTask, taskChanges } from './tasks/messages.ts'

/** Dependencies of `read`. */
export interface Reader extends BodyLimits {
  readonly sealer: Sealer
  /** Accepted values of `Origin`. */
  readonly origins: ReadonlySet<string>
  /** Returns the caller's task with this id at the server; null: it has none. */
  taskOf(
    arrival: RequestContext,
    at: { readonly identity: Identity; readonly server: string },
    id: string,
  ): OwnedTask | null
  /** Resolves when tasks that other replicas stored before are known; null: an unknown task stays unknown. */
  catchUpTasks(identity: Identity): Promise<void> | null
  /** Returns the server's session in which a task was created; null: none. */
  taskSession(task: OwnedTask, owner: Identity): Sealed | null
  /** Returns the one name of a server that this caller may name in two ways; any other name as it is. */
  nameOf(arrival: RequestContext, identity: Identity, name: string): string
  /** Returns the revisions that this caller may use with the server. */
  revisions(arrival: RequestContext, identity: Identity, server: string): readonly string[]
  /** Stores the parsed request until the response, also for refusals, which contain the request's id. */
  remember(arrival: RequestContext, request: McpRequest, caller: Identity): void
}

/** A request whose head is valid. */
export interface Opened {
  readonly reader: Reader
  readonly arrival: RequestContext
  readonly identity: Identity
  readonly server: string
  /** Null: the address of one server. */
  readonly shared: SharedRequest | null
  /** The server's session where the gateway opened it; undefined: the one of the headers. */
  readonly session?: Sealed | null
}

/** Checks the head, reads the body, and classifies the message (Streamable HTTP of revisions 2025-03-26 to 2026-07-28). */
export function read(
  reader: Reader,
  arrival: RequestContext,
  identity: Identity,
): Parsed | Denial | Promise<Parsed | Denial> {
  const name = serverName(arrival.wire.path)
  if (name === null) return deny('unknown_server', 'the path is /mcp/<name> with the name of an MCP server')
  const method = checkHead(reader, arrival)
  if (isDenial(method)) return method
  const server = reader.nameOf(arrival, identity, name)
  const opened: Opened = { reader, arrival, identity, server, shared: null }
  return method === 'POST' ? readMessage(opened) : readStream(opened, method)
}

/** Returns the HTTP method, or a denial for a method that MCP does not have and an origin that may not call the gateway. */
export function checkHead(
  reader: Reader,
  { wire: { method, headers } }: RequestContext,
): StreamMethod | 'POST' | Denial {
  const origin = header(headers, 'origin')
  if (origin !== null && !reader.origins.has(origin)) return deny('forbidden', 'this origin may not call the gateway')
  if (method === 'POST' || method === 'GET' || method === 'DELETE') return method
  return deny('method_not_allowed', `${method} is not a method of MCP`)
}

/** GET opens a stream, DELETE ends a session. */
type StreamMethod = 'GET' | 'DELETE'

/** Opens a sealed value of this caller for this server; null when it is invalid. */
function unseal({ reader, identity, server, shared }: Opened, kind: SealKind, text: string): Sealed | null {
  const own = shared === null ? text : withoutServer(text, server)
  return own === null ? null : reader.sealer.open(bindingOf(kind, identity, server), own)
}

/** Opens the sealed value of a header. Returns null when the header is absent, and a denial when it was not sealed for this caller. */
function openHeader(opened: Opened, kind: SealKind, name: string): Sealed | Denial | null {
  const text = header(opened.arrival.wire.headers, name)
  if (text === null) return null
  return unseal(opened, kind, text) ?? deny('unknown_session', name === SESSION ? 'no such session' : 'no such event')
}

export const SESSION = 'mcp-session-id'

/** Returns the session of the server for a request, or a denial. */
function sessionOf(opened: Opened): Sealed | Denial | null {
  return opened.session === undefined ? openHeader(opened, 'mcp-session', SESSION) : opened.session
}

/** Reads a GET, which opens the standalone stream, or a DELETE, which ends the session. Revision 2026-07-28 has neither. */
export function readStream(opened: Opened, method: StreamMethod): Parsed | Denial {
  const { reader, arrival, server, shared } = opened
  const version = claimedVersion(arrival.wire.headers, method, undefined)
  if (isDenial(version)) return version
  if (version.era === 'modern') return deny('method_not_allowed', `revision ${version.revision} has no ${method}`)
  if (!KNOWN_REVISIONS.includes(version.revision)) return unsupported(version, KNOWN_REVISIONS)
  const named = sessionOf(opened)
  if (isDenial(named)) return named
  const listens = method === 'GET'
  const lastEvent = listens ? openHeader(opened, 'mcp-event', 'last-event-id') : null
  if (isDenial(lastEvent)) return lastEvent
  const session = named ?? issuedIn(lastEvent)
  const unread = { ...NOTHING_SEALED, name: null, id: undefined, bytes: null, shared }
  const revision = lastEvent?.revision ?? version.revision
  const request: McpRequest = {
    ...unread,
    ...version,
    revision,
    kind: listens ? 'listen' : 'end',
    method,
    session,
    lastEvent,
  }
  reader.remember(arrival, request, opened.identity)
  const operation = listens ? 'mcp.listen' : 'mcp.control'
  return { operation, method, server, name: null, body: null, parent: originOf(request)?.call ?? null }
}

function readMessage(opened: Opened): Denial | Promise<Parsed | Denial> {
  return useJsonBytes<Parsed | Denial>(opened.arrival, opened.reader, (bytes) => {
    const message = parseMessage(bytes)
    return isDenial(message) ? message : readPosted(opened, bytes, message)
  })
}

/** Returns the request of a message that was parsed, and stores it. Waits if it names a task that another replica may have created just now. */
export function readPosted(
  opened: Opened,
  bytes: Uint8Array,
  message: JsonObject,
): Parsed | Denial | Promise<Parsed | Denial> {
  const post = new Post(opened, bytes, message)
  const classified = classify(post)
  const catchingUp = post.hasUnknownTask ? opened.reader.catchUpTasks(opened.identity) : null
  if (catchingUp !== null) return catchingUp.then(() => readKnown(opened, bytes, message))
  return remember(opened, message, classified)
}

/** The same without waiting: an unknown task stays unknown. */
export function readKnown(opened: Opened, bytes: Uint8Array, message: JsonObject): Parsed | Denial {
  return remember(opened, message, classify(new Post(opened, bytes, message)))
}

function remember(opened: Opened, message: JsonObject, { request, verdict }: Classified): Parsed | Denial {
  const { trace } = opened.arrival.wire
  const remembered = trace === undefined ? request : traced(request, message, trace)
  opened.reader.remember(opened.arrival, remembered, opened.identity)
  return verdict
}

/** A message with the head of its request. */
class Post implements Posted {
  readonly bytes: Uint8Array
  readonly message: JsonObject
  readonly #opened: Opened
  hasUnknownTask = false

  constructor(opened: Opened, bytes: Uint8Array, message: JsonObject) {
    this.bytes = bytes
    this.message = message
    this.#opened = opened
  }

  get server(): string {
    return this.#opened.server
  }

  get headers(): IncomingHttpHeaders {
    return this.#opened.arrival.wire.headers
  }

  get shared(): SharedRequest | null {
    return this.#opened.shared
  }

  session(): Sealed | Denial | null {
    return sessionOf(this.#opened)
  }

  open(kind: SealKind, text: string): Sealed | null {
    return unseal(this.#opened, kind, text)
  }

  revisions(): readonly string[] {
    const { reader, arrival, identity, server } = this.#opened
    return reader.revisions(arrival, identity, server)
  }

  task(id: string): OwnedTask | null {
    const { reader, arrival, identity, server } = this.#opened
    const task = reader.taskOf(arrival, { identity, server }, id)
    this.hasUnknownTask ||= task === null
    return task
  }

  taskSession(task: OwnedTask): Sealed | null {
    return this.#opened.reader.taskSession(task, this.#opened.identity)
  }
}

/** Returns the JSON-RPC 2.0 message, or a denial when the bytes are not one strict JSON object, which every parser reads alike. */
export function parseMessage(bytes: Uint8Array): JsonObject | Denial {
  const read = strictMessage(bytes)
  if (isDenial(read)) return read
  const message = read.value
  if (Array.isArray(message)) return deny('invalid_request', 'batches are not accepted: send one message per request')
  if (isObject(message) && message.jsonrpc === '2.0') return message
  return deny('invalid_request', 'the body is not a JSON-RPC 2.0 message')
}

/** A message, with everything that its validation needs. */
export interface Posted extends Unsealer {
  readonly bytes: Uint8Array
  readonly message: JsonObject
  /** The name that the caller used. */
  readonly server: string
  readonly headers: IncomingHttpHeaders
  /** Null: the address of one server. */
  readonly shared: SharedRequest | null
  /** Opens the session id of the headers. Only for legacy messages, since revision 2026-07-28 requires servers to ignore it. */
  session(): Sealed | Denial | null
  /** Returns the revisions that the caller may use with the server. Only called for messages of revision 2026-07-28. */
  revisions(): readonly string[]
  /** Returns the caller's task with this id of the server; null: it has none. */
  task(id: string): OwnedTask | null
  /** Returns the server's session in which a task was created; null: none. */
  taskSession(task: OwnedTask): Sealed | null
}

/** A classified message: the request for this plane, and the verdict for the pipeline. */
export interface Classified {
  readonly request: McpRequest
  readonly verdict: Parsed | Denial
}

/**
 * Determines the revision, kind, method and name of a message. Checks are in the order of revision 2026-07-28: version, `_meta`, mirrored
 * headers, method, parameters. All of them precede the evaluation of policies.
 */
export function classify(posted: Posted): Classified {
  const { bytes, message, headers } = posted
  const { params } = message
  const meta = member(params, '_meta')
  const version = claimedVersion(headers, message.method, meta)
  const { era, revision } = isDenial(version) ? UNKNOWN : version
  const session = era === 'legacy' ? posted.session() : null
  const stated = kindOf(message)
  const kind = stated ?? 'notification'
  const method = typeof message.method === 'string' ? message.method : ''
  const row = methodRow(method, era)
  const unsealed = openMessage(message, { kind, era, method, isShared: posted.shared !== null }, posted)
  const { opened, replaced, withheld } = isDenial(unsealed) ? NOTHING_SEALED : unsealed
  const uncarried = withheldPaths({ method, era, params, meta })
  const strange = unseenPaths(method, params)
  const refused = strange.length === 0 ? uncarried : [...uncarried, ...strange]
  const name = row?.name ? nameIn(params, row.name) : null
  const task = row?.operation === 'mcp.task' && name !== null ? (posted.task(name) ?? undefined) : undefined
  const tasks = taskChanges(posted, method)
  // At the address of all servers, a task is requested in the session in which it was created.
  const inTask = task === undefined || posted.shared === null || era === 'modern' ? null : posted.taskSession(task)
  const request: McpRequest = {
    kind,
    era,
    revision: opened[0]?.revision ?? (inTask === null ? revision : (task?.task.revision ?? revision)),
    method,
    name,
    id: message.id,
    bytes,
    session: isDenial(session) ? null : (session ?? issuedIn(opened[0]) ?? inTask),
    lastEvent: null,
    opened,
    replaced: tasks.replaced.length === 0 ? replaced : [...replaced, ...tasks.replaced],
    withheld: withheld.length + tasks.withheld.length === 0 ? refused : [...refused, ...withheld, ...tasks.withheld],
    task,
    shared: posted.shared,
  }
  if (isDenial(version)) return { request, verdict: version }
  if (isDenial(session)) return { request, verdict: session }
  const denial = refusal(posted, request, { stated, row, meta }) ?? (isDenial(unsealed) ? unsealed : null)
  return { request, verdict: denial ?? verdictOf(posted, request, row) }
}

/** Returns the parsed request of a valid message. */
function verdictOf(
  { bytes, message, server }: Posted,
  request: McpRequest,
  row: MethodRow | null,
): Classified['verdict'] {
  const { method, name } = request
  const origin = originOf(request)
  if (request.kind === 'answer') return answerOf(new McpBody(bytes, message, false), origin, server)
  if (row === null) return unknownMethod(request)
  const argumentsOnly = method === 'tools/call' || method === 'prompts/get'
  const body = new McpBody(bytes, message, argumentsOnly)
  if (row.operation === 'mcp.task') return aboutTask(body, request, server)
  return { operation: row.operation, method, server, name, body, parent: origin?.call ?? null }
}

/** Returns the server's session in which a value was sealed at the address of all servers; null for other values. */
function issuedIn(sealed: Sealed | null | undefined): Sealed | null {
  return sealed?.session === undefined ? null : { id: sealed.session, target: sealed.target }
}

/** A response to a server request has the names of the call during which the server sent it, and is judged like that call. */
function answerOf(body: McpBody, origin: Origin | null, server: string): Classified['verdict'] {
  if (origin === null) return deny('not_found', 'no request waits for this answer')
  const { call: parent, operation: parentOperation, method, tool: name } = origin
  return { operation: 'mcp.answer', method, server, name, body, parent, parentOperation }
}

const UNKNOWN = { era: 'legacy', revision: '' } as const

/** Results of classification that `refusal` checks. */
interface Form {
  /** Null: not a valid JSON-RPC message. */
  readonly stated: ReturnType<typeof kindOf>
  readonly row: MethodRow | null
  readonly meta: unknown
}

function refusal(posted: Posted, request: McpRequest, { stated, row, meta }: Form): Denial | null {
  const modern = request.era === 'modern'
  const revisions = modern ? posted.revisions() : KNOWN_REVISIONS
  const usable = revisions.includes(request.revision) && isModernRevision(request.revision) === modern
  if (!usable) return unsupported(request, revisions)
  if (stated === null) return deny('invalid_request', 'the body is neither a request nor a notification nor a response')
  if (stated === 'answer') return modern ? deny('invalid_request', 'this revision has no responses to post') : null
  const incomplete = modern && stated === 'request' ? checkMeta(meta) : null
  if (incomplete !== null) return incomplete
  const unmirrored = modern ? checkMirrors(posted.headers, request.method, request.name) : null
  if (unmirrored !== null) return unmirrored
  const strange = modern ? checkParameters(posted.headers, member(posted.message.params, 'arguments')) : null
  if (strange !== null) return strange
  const isNotification = request.method.startsWith('notifications/')
  if (row === null || isNotification !== (stated === 'notification')) return unknownMethod(request)
  if (row.name !== null && request.name === null) return deny('invalid_request', `params.${row.name} must be a string`)
  return null
}

function unknownMethod({ method, revision }: McpRequest): Denial {
  return deny('unknown_method', `revision ${revision} has no method ${JSON.stringify(method)} for clients`)
}

/** Returns the kind of a JSON-RPC message, or null when it is invalid. An id is a string or a number. */
function kindOf(message: JsonObject): 'request' | 'notification' | 'answer' | null {
  const hasId = typeof message.id === 'string' || typeof message.id === 'number'
  if (typeof message.method === 'string') return hasId ? 'request' : message.id === undefined ? 'notification' : null
  const answers = message.result !== undefined || message.error !== undefined
  return message.method === undefined && hasId && answers ? 'answer' : null
}

function nameIn(params: unknown, name: string): string | null {
  const value = member(params, name)
  return typeof value === 'string' ? value : null
}

const PATH = ['params', '_meta', 'traceparent'] as const

/**
 * Adopts the trace context of a message (revision 2026-07-28, `params._meta`), which has precedence over the headers. Returns the request
 * with the gateway's span in its place.
 */
export function traced(request: McpRequest, { params }: JsonObject, trace: TraceContext): McpRequest {
  const meta = member(params, '_meta')
  const traceparent = member(meta, 'traceparent')
  if (typeof traceparent !== 'string') return request
  const state = member(meta, 'tracestate')
  trace.adopt(traceparent, typeof state === 'string' ? state : '')
  if (trace.traceparent === null) return request
  const replacement = { path: PATH, with: Buffer.from(JSON.stringify(trace.traceparent)) }
  return { ...request, replaced: [...request.replaced, replacement] }
}

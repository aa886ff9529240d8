import type { IncomingHttpHeaders } from 'node:http'
import {
  type Denial,
  deny,
  type Identity,
  isDenial,
  type Parsed,
  type RequestContext,
  type TraceContext,
} from '../../call/index.ts'
import { type BodyLimits, useJsonBytes } from '../wire/body.ts'
import { header } from '../wire/headers.ts'
import { isObject, type JsonObject, member, strictMessage } from '../wire/json.ts'
import { unseenPaths, withheldPaths } from './capabilities.ts'
import { isModernRevision, KNOWN_REVISIONS, type MethodRow, methodRow } from './classify.ts'
import { checkMeta, checkMirrors, checkParameters, claimedVersion, unsupported } from './headers.ts'
import { McpBody, type McpRequest, originOf } from './message.ts'
import { NOTHING_SEALED, openMessage, type Unsealer } from './seal/open.ts'
import { bindingOf, type Origin, type Sealed, type Sealer, type SealKind } from './seal/seal.ts'

/** Everything below this path is a server's name. */
const PREFIX = '/mcp/'
/** docs/spec/crds.md: how an MCPServer may be named; docs/spec/gateway.md, rule 7: the same for static upstreams. */
const SERVER_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/

/** What reading needs beside the request. */
export interface Reader extends BodyLimits {
  readonly sealer: Sealer
  /** Values of `Origin` that a browser may come from. */
  readonly origins: ReadonlySet<string>
  /** The revisions that the server, as this caller would reach it, may be spoken to with. */
  spoken(arrival: RequestContext, identity: Identity, server: string): readonly string[]
  /** Keeps what was read until the answer, refusals included: those answer with the request's id. */
  remember(arrival: RequestContext, request: McpRequest): void
}

/** A request whose head has passed. */
interface Opened {
  readonly reader: Reader
  readonly arrival: RequestContext
  readonly identity: Identity
  readonly server: string
}

/** The server's name in a path; null when it cannot be one. */
export function serverName(path: string): string | null {
  const name = path.startsWith(PREFIX) ? path.slice(PREFIX.length) : ''
  return SERVER_NAME.test(name) ? name : null
}

/** The gate at the HTTP level, then the body, then what it asks for (Streamable HTTP of revisions 2025-03-26 to 2026-07-28). */
export function read(
  reader: Reader,
  arrival: RequestContext,
  identity: Identity,
): Parsed | Denial | Promise<Parsed | Denial> {
  const { method, path, headers } = arrival.wire
  const server = serverName(path)
  if (server === null) return deny('unknown_server', 'the path is /mcp/<name> with the name of an MCP server')
  const origin = header(headers, 'origin')
  if (origin !== null && !reader.origins.has(origin)) return deny('forbidden', 'this origin may not call the gateway')
  if (method !== 'POST' && method !== 'GET' && method !== 'DELETE')
    return deny('method_not_allowed', `${method} is not a method of MCP`)
  const opened: Opened = { reader, arrival, identity, server }
  return method === 'POST' ? readMessage(opened) : readStream(opened, method)
}

/** Opens what this caller was given under seal of this server. */
function unseal({ reader, identity, server }: Opened, kind: SealKind, text: string): Sealed | null {
  return reader.sealer.open(bindingOf(kind, identity, server), text)
}

/** What a client names in a header and has under seal; a foreign one looks as if it never existed. */
function openHeader(opened: Opened, kind: SealKind, name: string): Sealed | Denial | null {
  const text = header(opened.arrival.wire.headers, name)
  if (text === null) return null
  return unseal(opened, kind, text) ?? deny('unknown_session', name === SESSION ? 'no such session' : 'no such event')
}

const SESSION = 'mcp-session-id'

/** GET opens the standalone stream, DELETE ends the session; revision 2026-07-28 has neither. */
function readStream(opened: Opened, method: 'GET' | 'DELETE'): Parsed | Denial {
  const { reader, arrival, server } = opened
  const version = claimedVersion(arrival.wire.headers, method, undefined)
  if (isDenial(version)) return version
  if (version.era === 'modern') return deny('method_not_allowed', `revision ${version.revision} has no ${method}`)
  if (!KNOWN_REVISIONS.includes(version.revision)) return unsupported(version, KNOWN_REVISIONS)
  const session = openHeader(opened, 'mcp-session', SESSION)
  if (isDenial(session)) return session
  const listens = method === 'GET'
  const lastEvent = listens ? openHeader(opened, 'mcp-event', 'last-event-id') : null
  if (isDenial(lastEvent)) return lastEvent
  const unread = { ...NOTHING_SEALED, name: null, id: undefined, bytes: null }
  const request: McpRequest = { ...unread, ...version, kind: listens ? 'listen' : 'end', method, session, lastEvent }
  reader.remember(arrival, request)
  const operation = listens ? 'mcp.listen' : 'mcp.control'
  return { operation, method, server, name: null, body: null, parent: originOf(request)?.call ?? null }
}

function readMessage(opened: Opened): Denial | Promise<Parsed | Denial> {
  return useJsonBytes(opened.arrival, opened.reader, (bytes) => parsedOf(opened, bytes))
}

function parsedOf(opened: Opened, bytes: Uint8Array): Parsed | Denial {
  const message = parseMessage(bytes)
  if (isDenial(message)) return message
  const { request, verdict } = classify(new Post(opened, bytes, message))
  const { trace } = opened.arrival.wire
  opened.reader.remember(opened.arrival, trace === undefined ? request : traced(request, message, trace))
  return verdict
}

/** A message with the head that it came under. */
class Post implements Posted {
  readonly bytes: Uint8Array
  readonly message: JsonObject
  readonly #opened: Opened

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

  session(): Sealed | Denial | null {
    return openHeader(this.#opened, 'mcp-session', SESSION)
  }

  open(kind: SealKind, text: string): Sealed | null {
    return unseal(this.#opened, kind, text)
  }

  spoken(): readonly string[] {
    const { reader, arrival, identity, server } = this.#opened
    return reader.spoken(arrival, identity, server)
  }
}

/** The message, when its bytes are one JSON object of JSON-RPC 2.0 and no two readers can see different things in them. */
export function parseMessage(bytes: Uint8Array): JsonObject | Denial {
  const read = strictMessage(bytes)
  if (isDenial(read)) return read
  const message = read.value
  if (Array.isArray(message)) return deny('invalid_request', 'batches are not accepted: send one message per request')
  if (isObject(message) && message.jsonrpc === '2.0') return message
  return deny('invalid_request', 'the body is no JSON-RPC 2.0 message')
}

/** A message and what is needed to judge its form. */
export interface Posted extends Unsealer {
  readonly bytes: Uint8Array
  readonly message: JsonObject
  /** As the caller names it. */
  readonly server: string
  readonly headers: IncomingHttpHeaders
  /** The session that the headers name; asked only of legacy messages, because 2026-07-28 says to ignore it. */
  session(): Sealed | Denial | null
  /** The revisions that the server may be spoken to with; asked only when it matters. */
  spoken(): readonly string[]
}

/** A message taken apart: what all planes share, and what this one keeps for itself. */
export interface Classified {
  readonly request: McpRequest
  readonly verdict: Parsed | Denial
}

/**
 * Names revision, kind, method and name of a message. Refusals come in the order of revision 2026-07-28: version, `_meta`, mirrored
 * headers, method, parameters; all of them before any policy is asked.
 */
export function classify(posted: Posted): Classified {
  const { bytes, message, headers } = posted
  const { params } = message
  const meta = member(params, '_meta')
  const version = claimedVersion(headers, message.method, meta)
  const { era, revision } = isDenial(version) ? UNKNOWN : version
  const session = era === 'legacy' ? posted.session() : null
  const said = kindOf(message)
  const kind = said ?? 'notification'
  const method = typeof message.method === 'string' ? message.method : ''
  const row = methodRow(method, era)
  const unsealed = openMessage(message, { kind, era, method }, posted)
  const { opened, replaced, withheld } = isDenial(unsealed) ? NOTHING_SEALED : unsealed
  const uncarried = withheldPaths({ method, era, params, meta })
  const strange = unseenPaths(method, params)
  const refused = strange.length === 0 ? uncarried : [...uncarried, ...strange]
  const request: McpRequest = {
    kind,
    era,
    revision,
    method,
    name: row?.name ? nameIn(params, row.name) : null,
    id: message.id,
    bytes,
    session: isDenial(session) ? null : session,
    lastEvent: null,
    opened,
    replaced,
    withheld: withheld.length === 0 ? refused : [...refused, ...withheld],
  }
  if (isDenial(version)) return { request, verdict: version }
  if (isDenial(session)) return { request, verdict: session }
  const denial = refusal(posted, request, { said, row, meta }) ?? (isDenial(unsealed) ? unsealed : null)
  return { request, verdict: denial ?? verdictOf(posted, request, row) }
}

/** What the planes share of a message whose form is right. */
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
  return { operation: row.operation, method, server, name, body, parent: origin?.call ?? null }
}

/** An answer goes by the names of the call in which the server asked, and is judged as that call is. */
function answerOf(body: McpBody, origin: Origin | null, server: string): Classified['verdict'] {
  if (origin === null) return deny('not_found', 'no request waits for this answer')
  const { call: parent, operation: parentOperation, method, tool: name } = origin
  return { operation: 'mcp.answer', method, server, name, body, parent, parentOperation }
}

const UNKNOWN = { era: 'legacy', revision: '' } as const

/** What is known of the form of a message. */
interface Form {
  /** Null: it is none of the three. */
  readonly said: ReturnType<typeof kindOf>
  readonly row: MethodRow | null
  readonly meta: unknown
}

function refusal(posted: Posted, request: McpRequest, { said, row, meta }: Form): Denial | null {
  const modern = request.era === 'modern'
  const spoken = modern ? posted.spoken() : KNOWN_REVISIONS
  const usable = spoken.includes(request.revision) && isModernRevision(request.revision) === modern
  if (!usable) return unsupported(request, spoken)
  if (said === null) return deny('invalid_request', 'the body is neither a request nor a notification nor an answer')
  if (said === 'answer') return modern ? deny('invalid_request', 'this revision has no answers to post') : null
  const incomplete = modern && said === 'request' ? checkMeta(meta) : null
  if (incomplete !== null) return incomplete
  const unmirrored = modern ? checkMirrors(posted.headers, request.method, request.name) : null
  if (unmirrored !== null) return unmirrored
  const strange = modern ? checkParameters(posted.headers, member(posted.message.params, 'arguments')) : null
  if (strange !== null) return strange
  const isNotification = request.method.startsWith('notifications/')
  if (row === null || isNotification !== (said === 'notification')) return unknownMethod(request)
  if (row.name !== null && request.name === null) return deny('invalid_request', `params.${row.name} must be a string`)
  return null
}

function unknownMethod({ method, revision }: McpRequest): Denial {
  return deny('unknown_method', `revision ${revision} has no method ${JSON.stringify(method)} for clients`)
}

/** Which of the three kinds of JSON-RPC messages it is; null when it is none. An id is a string or a number. */
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
 * The same request, as far as its message names a trace (revision 2026-07-28, `params._meta`): what it says goes before the headers, and the
 * server is told of the gateway's span in the same place.
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

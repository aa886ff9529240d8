import type { IncomingHttpHeaders } from 'node:http'
import { type Denial, deny, isDenial, type Parsed } from '../../call/index.ts'
import { isObject, type JsonObject, member } from '../wire/json.ts'
import { strictMessage } from '../wire/rpc.ts'
import { unseenPaths, withheldPaths } from './capabilities.ts'
import { isModernRevision, KNOWN_REVISIONS, type MethodRow, methodRow } from './classify.ts'
import { checkMeta, checkMirrors, checkParameters, claimedVersion, unsupported } from './headers.ts'
import { McpBody, type McpRequest, originOf } from './message.ts'
import { NOTHING_SEALED, openMessage, type Unsealer } from './seal/open.ts'
import type { Origin, Sealed } from './seal/seal.ts'

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

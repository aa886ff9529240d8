import { type Denial, errorTable, type Head, type RequestContext, statusOf } from '../../call/index.ts'
import { header } from '../wire/message.ts'
import { DENIAL_MEMBER, refusalHeaders } from '../wire/refusal.ts'
import { type Progress, secondsOf, textOf } from '../wire/refusal-text.ts'
import { commentEvent } from '../wire/sse.ts'
import { serverName } from './classify.ts'
import { McpFrame } from './frames/frame.ts'
import { idOf, type McpRequest, progressTokenOf, requestMethodOf } from './message.ts'

/** Members of a denial's `data` that are sent to clients. */
const PUBLIC_DATA = ['supported', 'requested', 'requiredCapabilities', 'approvalId', 'connectURL', 'provider'] as const

/**
 * Returns true if a refusal is sent as the HTTP status: for requests that were not read, rows of the error table with `http`, challenges,
 * and messages other than JSON-RPC requests (GET, DELETE, notifications, posted responses). Other refusals are sent with HTTP 200.
 */
function isHttpLevel(request: McpRequest | null, denial: Denial): boolean {
  return request === null || request.kind !== 'request' || hasHttpStatus(request, denial)
}

function hasHttpStatus({ era }: McpRequest, denial: Denial): boolean {
  const row = errorTable[denial.code]
  if (denial.code === 'unknown_method') return era === 'modern'
  return ('http' in row && row.http) || statusOf(denial) === 401
}

/** How refusals of `tools/call` are sent: as results, which models read, or as JSON-RPC errors. */
export type RefusalForm = 'result' | 'error'

export interface RefusedRequest {
  /** `x-plat-decision-id`. */
  readonly decisionId: string
  /** Null: it was not read. */
  readonly request: McpRequest | null
  readonly form: RefusalForm
  readonly progress: Progress
  /** Milliseconds since the epoch. */
  readonly now: number
}

/** Renders a refusal before the head was sent. */
export function refusal(arrival: RequestContext, refused: RefusedRequest, denial: Denial, baseURL: string | null) {
  const status = isHttpLevel(refused.request, denial) ? statusOf(denial) : 200
  const head: Head = { status, headers: refusalHead(arrival, denial, baseURL) }
  return { head, frame: McpFrame.written('error', refusalMessage(refused, denial)) }
}

/**
 * Returns the message of a refusal. Refusals of `tools/call` are results in the form `result`, except those that are sent as the HTTP status:
 * of authentication, of malformed requests, and of an overloaded gateway.
 */
function refusalMessage({ form, request, ...refused }: RefusedRequest, denial: Denial): Uint8Array {
  const isResult =
    form === 'result' &&
    request !== null &&
    requestMethodOf(request) === 'tools/call' &&
    !hasHttpStatus(request, denial)
  return isResult ? resultMessage(request, { ...refused, denial }) : errorMessage(refused.decisionId, request, denial)
}

/** Returns the bytes of a tool result that says why the call was refused. Without `structuredContent`, which clients check by the tool's schema. */
function resultMessage(
  request: McpRequest,
  { denial, ...refused }: Omit<RefusedRequest, 'form' | 'request'> & { readonly denial: Denial },
): Uint8Array {
  const name = request.shared?.shownName ?? request.name ?? request.lastEvent?.origin?.tool ?? 'the tool'
  const result = {
    ...(request.era === 'modern' && { resultType: 'complete' }),
    content: [{ type: 'text', text: textOf({ ...refused, subject: { kind: 'tool', name }, denial }) }],
    isError: true,
    _meta: { [DENIAL_MEMBER]: denialData(refused.decisionId, denial) },
  }
  return message(request, `"result":${JSON.stringify(result)}`)
}

/** Returns what a JSON-RPC error holds: its code, data and message. */
function denialData(decisionId: string, denial: Denial): Record<string, unknown> {
  const { retryAfterMs, reason } = denial
  const retryAfterSeconds = retryAfterMs === null ? undefined : secondsOf(retryAfterMs)
  return { code: rpcCodeOf(denial), ...errorData(decisionId, denial), reason, retryAfterSeconds }
}

/** Returns true for GET and DELETE, which modern revisions and built-in servers refuse, since they have no streams and sessions. */
function refusesStreams({ wire }: RequestContext): boolean {
  return wire.method === 'GET' || wire.method === 'DELETE'
}

function refusalHead(arrival: RequestContext, denial: Denial, baseURL: string | null): Record<string, string> {
  const headers = refusalHeaders(denial, metadataURL(baseURL, serverName(arrival.wire.path)))
  return denial.code === 'method_not_allowed'
    ? { ...headers, allow: refusesStreams(arrival) ? 'POST' : 'POST, GET, DELETE' }
    : headers
}

function metadataURL(baseURL: string | null, server: string | null): string | undefined {
  if (baseURL === null || server === null) return undefined
  const base = new URL(baseURL)
  return `${base.origin}/.well-known/oauth-protected-resource${base.pathname.replace(/\/$/, '')}/mcp/${server}`
}

/** Returns the bytes of the JSON-RPC error of a denial, with the id of the request as the client wrote it. */
export function errorMessage(decisionId: string, request: McpRequest | null, denial: Denial): Uint8Array {
  const error = { code: rpcCodeOf(denial), message: denial.reason, data: errorData(decisionId, denial) }
  return message(request, `"error":${JSON.stringify(error)}`)
}

/** Returns a response with this member. */
function message(request: McpRequest | null, member: string): Uint8Array {
  const id = (request === null ? null : idOf(request)) ?? Buffer.from('null')
  return Buffer.concat([Buffer.from('{"jsonrpc":"2.0","id":'), id, Buffer.from(`,${member}}`)])
}

function rpcCodeOf(denial: Denial): number {
  const row = errorTable[denial.code]
  const named = denial.data?.rpc
  return typeof named === 'number' ? named : 'rpc' in row ? row.rpc : statusOf(denial)
}

function errorData(decisionId: string, denial: Denial): Record<string, unknown> {
  const data: Record<string, unknown> = { error: denial.code, decisionId }
  if (denial.policy !== null) data.policy = denial.policy
  if (denial.rule !== null) data.rule = denial.rule
  if (denial.retryAfterMs !== null) data.retryAfterMs = denial.retryAfterMs
  for (const name of PUBLIC_DATA) if (denial.data?.[name] !== undefined) data[name] = denial.data[name]
  return data
}

/** Returns true if the client accepts an event stream. */
export function takesStream(arrival: RequestContext): boolean {
  const accept = header(arrival.wire.headers, 'accept') ?? ''
  return /(?:^|[\s,])(?:text\/event-stream|text\/\*|\*\/\*)(?=\s*(?:[,;]|$))/i.test(accept)
}

/** Progress per heartbeat: it must increase with each notification, and stay below the values that the server will send. */
const BEAT_STEP = 1e-6

/** Events sent while an approval is pending: progress notifications if the client sent a progress token, otherwise comments. */
export class KeepAliveEvents {
  readonly #request: McpRequest
  readonly #approvalId: string
  #sent = 0

  constructor(request: McpRequest, approvalId: string) {
    this.#request = request
    this.#approvalId = approvalId
  }

  next(): McpFrame {
    const token = progressTokenOf(this.#request)
    if (token === null)
      return McpFrame.event('progress', { raw: commentEvent('waiting for approval'), json: null }, undefined)
    this.#sent++
    const rest = { progress: this.#sent * BEAT_STEP, message: `waiting for approval ${this.#approvalId}` }
    const parameters = `{"progressToken":${Buffer.from(token).toString('utf8')},${JSON.stringify(rest).slice(1)}`
    const message = `{"jsonrpc":"2.0","method":"notifications/progress","params":${parameters}}`
    return McpFrame.written('progress', Buffer.from(message)).inEvent()
  }
}

/** Returns the response that ends a stream whose head has been sent. */
export function terminalRefusal(refused: RefusedRequest, denial: Denial): McpFrame {
  return McpFrame.written('error', refusalMessage(refused, denial)).inEvent()
}

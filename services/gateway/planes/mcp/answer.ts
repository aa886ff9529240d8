import { type Denial, errorTable, type Head, type RequestContext, statusOf } from '../../call/index.ts'
import { header } from '../wire/headers.ts'
import { refusalHeaders } from '../wire/refusal.ts'
import { commentEvent } from '../wire/sse.ts'
import { McpFrame } from './frames/frame.ts'
import { idOf, type McpRequest, progressTokenOf } from './message.ts'
import { serverName } from './read.ts'

/** Members of a denial's `data` that clients see; whatever else stands there is for the plane. */
const TOLD = ['supported', 'requested', 'approvalId', 'connectURL', 'provider'] as const

/**
 * Whether a refusal is told by the HTTP status: what never became a call, what the error table says so, challenges, and everything
 * that is no JSON-RPC request (GET, DELETE, notifications, posted answers). Any other is an answer on HTTP 200.
 */
function isHttpLevel(request: McpRequest | null, denial: Denial): boolean {
  if (request === null || request.kind !== 'request') return true
  const row = errorTable[denial.code]
  if (denial.code === 'unknown_method') return request.era === 'modern'
  return ('http' in row && row.http) || statusOf(denial) === 401
}

/** The answer to a refused request while no head has been sent. */
export function refusal(arrival: RequestContext, request: McpRequest | null, denial: Denial, baseURL: string | null) {
  const status = isHttpLevel(request, denial) ? statusOf(denial) : 200
  const head: Head = { status, headers: refusalHead(arrival, denial, baseURL) }
  return { head, frame: McpFrame.written('error', errorMessage(arrival.id, request, denial)) }
}

/** GET and DELETE are refused where there are no streams and sessions: by a modern revision, and by servers of the gateway itself. */
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

/** The JSON-RPC error of a denial, as bytes: with the request's own id, byte for byte. */
export function errorMessage(decisionId: string, request: McpRequest | null, denial: Denial): Uint8Array {
  const row = errorTable[denial.code]
  const named = denial.data?.rpc
  const code = typeof named === 'number' ? named : 'rpc' in row ? row.rpc : statusOf(denial)
  const error = { code, message: denial.reason, data: errorData(decisionId, denial) }
  const id = (request === null ? null : idOf(request)) ?? Buffer.from('null')
  return Buffer.concat([Buffer.from('{"jsonrpc":"2.0","id":'), id, Buffer.from(`,"error":${JSON.stringify(error)}}`)])
}

function errorData(decisionId: string, denial: Denial): Record<string, unknown> {
  const data: Record<string, unknown> = { error: denial.code, decisionId }
  if (denial.policy !== null) data.policy = denial.policy
  if (denial.rule !== null) data.rule = denial.rule
  if (denial.retryAfterMs !== null) data.retryAfterMs = denial.retryAfterMs
  for (const name of TOLD) if (denial.data?.[name] !== undefined) data[name] = denial.data[name]
  return data
}

/** Whether the client takes an event stream. */
export function takesStream(arrival: RequestContext): boolean {
  const accept = header(arrival.wire.headers, 'accept') ?? ''
  return /(?:^|[\s,])(?:text\/event-stream|text\/\*|\*\/\*)(?=\s*(?:[,;]|$))/i.test(accept)
}

/** How far one beat moves progress: it must grow with each notification, and leave the numbers of the server ahead of it. */
const BEAT_STEP = 1e-6

/** What goes over an open stream while a person decides: progress for a client that asked for it, else a comment. */
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

/** The terminal error of a stream whose head has been sent. */
export function terminalError(decisionId: string, request: McpRequest | null, denial: Denial): McpFrame {
  return McpFrame.written('error', errorMessage(decisionId, request, denial)).inEvent()
}

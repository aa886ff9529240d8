import {
  type Denial,
  errorTable,
  type Head,
  type RequestContext,
  statusOf,
  type WireRequest,
} from '../../call/index.ts'
import { OWN_DOMAIN, refusalHeaders } from '../wire/refusal.ts'
import { A2aFrame, eventOf } from './frame.ts'
import { type A2aRequest, noted } from './request.ts'

/** Reasons of the errors that A2A defines (section 5.4), by code. Their domain is the protocol's. */
const PROTOCOL_REASONS: Readonly<Record<number, string>> = {
  [-32001]: 'TASK_NOT_FOUND',
  [-32002]: 'TASK_NOT_CANCELABLE',
  [-32003]: 'PUSH_NOTIFICATION_NOT_SUPPORTED',
  [-32004]: 'UNSUPPORTED_OPERATION',
  [-32006]: 'INVALID_AGENT_RESPONSE',
  [-32007]: 'EXTENDED_AGENT_CARD_NOT_CONFIGURED',
  [-32009]: 'VERSION_NOT_SUPPORTED',
}

const PROTOCOL_DOMAIN = 'a2a-protocol.org'
const ERROR_INFO = 'type.googleapis.com/google.rpc.ErrorInfo'

/** Renders a refusal before the head was sent. */
export function refusal(arrival: RequestContext, denial: Denial): { readonly head: Head; readonly frame: A2aFrame } {
  const request = noted(arrival.wire)
  const headers = refusalHeaders(denial)
  if (denial.code === 'method_not_allowed' && typeof denial.data?.allow === 'string') headers.allow = denial.data.allow
  const status = isHttpLevel(arrival.wire, request, denial) ? statusOf(denial) : 200
  return { head: { status, headers }, frame: A2aFrame.body('error', errorMessage(arrival.id, request, denial)) }
}

/** Codes of posted messages that are not valid requests. The SDKs read their errors with status 200 only. */
const INVALID_MESSAGE: ReadonlySet<string> = new Set<Denial['code']>(['invalid_request', 'unsupported_version'])

/** Returns true if a refusal is sent as the HTTP status: for requests that were not read, cards, challenges, and rows with `http`. */
function isHttpLevel({ method }: WireRequest, request: A2aRequest | null, denial: Denial): boolean {
  if (method === 'POST' && INVALID_MESSAGE.has(denial.code)) return false
  if (request === null || request.bytes === null) return true
  const row = errorTable[denial.code]
  return ('http' in row && row.http) || statusOf(denial) === 401
}

/** Returns the error that ends a stream whose head has been sent. */
export function terminalError(decisionId: string, request: A2aRequest | null, denial: Denial): A2aFrame {
  return A2aFrame.event(eventOf(errorMessage(decisionId, request, denial)))
}

/** Returns the bytes of the JSON-RPC error of a denial, with the id of the request as the caller wrote it. */
function errorMessage(decisionId: string, request: A2aRequest | null, denial: Denial): Uint8Array {
  const row = errorTable[denial.code]
  const named = denial.data?.rpc
  const code = typeof named === 'number' ? named : 'rpc' in row ? row.rpc : statusOf(denial)
  const error = { code, message: denial.reason, data: [errorInfo(decisionId, denial, code)] }
  const id = request?.id ?? Buffer.from('null')
  return Buffer.concat([Buffer.from('{"jsonrpc":"2.0","id":'), id, Buffer.from(`,"error":${JSON.stringify(error)}}`)])
}

/** Returns a google.rpc.ErrorInfo in ProtoJSON: values of `metadata` are strings. `error` is the gateway's error code. */
function errorInfo(decisionId: string, denial: Denial, code: number): object {
  const { policy, rule, retryAfterMs, data } = denial
  const reason = PROTOCOL_REASONS[code]
  const metadata: Record<string, string> = { error: denial.code, decisionId }
  if (policy !== null) metadata.policy = policy
  if (rule !== null) metadata.rule = rule
  if (retryAfterMs !== null) metadata.retryAfterMs = String(retryAfterMs)
  if (typeof data?.approvalId === 'string') metadata.approvalId = data.approvalId
  return {
    '@type': ERROR_INFO,
    reason: reason ?? denial.code.toUpperCase(),
    domain: reason === undefined ? OWN_DOMAIN : PROTOCOL_DOMAIN,
    metadata,
  }
}

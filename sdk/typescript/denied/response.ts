import { isObject, type JsonObject } from '@plat/core'
import { waitingClock } from '../clock.ts'
import { type DenialCode, isDenialCode } from './codes.ts'
import type { DenialFacts } from './denied.ts'
import { type HeaderReader, retryAfterIn } from './retry-after.ts'

const NO_HEADERS: HeaderReader = () => null

/**
 * Reads the body of a refusal of every protocol: tool results and JSON-RPC errors of MCP, errors of A2A, OpenAI's and Anthropic's error
 * objects, and the plain `{error, message, requestId}`. Returns null if it is not from the gateway.
 */
export function factsIn(body: unknown, status = 0, header: HeaderReader = NO_HEADERS): DenialFacts | null {
  if (!isObject(body)) return null
  const { error, result } = body
  if (result !== undefined) return resultFacts(result, header)
  // Servers other than the gateway use such words too, but without the ID of a request.
  if (isDenialCode(error))
    return typeof body.requestId === 'string' ? facts(error, { status, header, message: body.message }) : null
  if (!isObject(error)) return null
  if (typeof error.code === 'number') return rpcFacts(error, status, header)
  if (!isDenialCode(error.code)) return null
  return facts(error.code, { status, header, message: error.message, data: { approvalId: error.approval_id } })
}

/** Member of a tool result's `_meta` with the refusal. */
const DENIAL_MEMBER = 'plat.dev/denial'

/** A result of `tools/call` by which the gateway refused the call: its `_meta` has the members of the JSON-RPC error. */
export function resultFacts(result: unknown, header: HeaderReader = NO_HEADERS): DenialFacts | null {
  if (!isObject(result) || result.isError !== true || !isObject(result._meta)) return null
  const denial = result._meta[DENIAL_MEMBER]
  if (!isObject(denial)) return null
  return rpcFacts({ code: denial.code, message: denial.reason, data: denial }, 0, header)
}

/** A JSON-RPC error object: the gateway's code is in `data.error`, or in the metadata of A2A's ErrorInfo. */
export function rpcFacts(error: JsonObject, status = 0, header: HeaderReader = NO_HEADERS): DenialFacts | null {
  const data = denialData(error.data)
  if (data === null || !isDenialCode(data.error)) return null
  // Codes of JSON-RPC and the protocols are negative; all others are the HTTP status.
  const httpStatus = typeof error.code === 'number' && error.code > 0 ? error.code : status
  return facts(data.error, { status: httpStatus, header, message: error.message, data })
}

function denialData(data: unknown): JsonObject | null {
  if (isObject(data)) return data
  if (!Array.isArray(data)) return null
  const info: unknown = data.find((one) => isObject(one) && isObject(one.metadata) && 'error' in one.metadata)
  return isObject(info) && isObject(info.metadata) ? info.metadata : null
}

interface Parts {
  readonly status: number
  readonly header: HeaderReader
  readonly message: unknown
  readonly data?: JsonObject
}

function facts(code: DenialCode, { status, header, message, data = {} }: Parts): DenialFacts {
  return {
    code,
    message: text(message) ?? code,
    status,
    policy: text(data.policy),
    rule: text(data.rule),
    decisionId: text(data.decisionId) ?? header('x-plat-decision-id'),
    retryAfterMs: milliseconds(data.retryAfterMs) ?? retryAfterIn(header, waitingClock.now()),
    approvalId: text(data.approvalId),
    scopes: scopesIn(header('www-authenticate')),
    connectURL: text(data.connectURL),
    provider: text(data.provider),
  }
}

/** `scope` of a challenge (RFC 6750, section 3). */
function scopesIn(challenge: string | null): readonly string[] {
  const scope = /[\s,]scope="([^"]*)"/.exec(challenge ?? '')?.[1] ?? ''
  return scope.split(' ').filter((one) => one !== '')
}

/** A longer time is not one, in milliseconds. */
const MAX_RETRY_MS = 1e12

/** ErrorInfo of A2A has only texts. */
function milliseconds(value: unknown): number | null {
  const number = typeof value === 'string' && /^\d{1,12}$/.test(value) ? Number(value) : value
  return typeof number === 'number' && number >= 0 && number < MAX_RETRY_MS ? number : null
}

function text(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

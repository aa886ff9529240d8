import { elementSpans, findSpan, isObject, JsonError, type JsonObject, MESSAGE_LIMITS, parseStrict } from '@plat/core'
import { type Denial, deny, isDenial } from '../../../call/index.ts'
import { dialectOf } from '../dialects/all.ts'
import { isSet } from '../dialects/checks.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { messages } from '../dialects/messages.ts'
import { type ModelBody, readModelBody } from '../request.ts'
import { LineTooLongError, linesOf } from './lines.ts'

/** One request of a batch. */
export interface BatchRequest {
  /** From 1 on: the number of its line or in its list. */
  readonly number: number
  readonly body: ModelBody
  /** The request with another body, as its provider reads it. */
  written(body: Uint8Array): Uint8Array
}

/** Most requests of one batch. */
export const MAX_REQUESTS = 50_000
/** Endpoints of OpenAI's API that batches may call. */
const ENDPOINTS: ReadonlySet<string> = new Set(['chat/completions', 'completions', 'responses', 'embeddings'])
/** Names of requests, in the characters that both APIs accept. */
const CUSTOM_ID = /^[A-Za-z0-9_.:-]{1,64}$/
const LINE: ReadonlySet<string> = new Set(['custom_id', 'method', 'url', 'body'])
const ENTRY: ReadonlySet<string> = new Set(['custom_id', 'params'])

/** Returns the denial of one request of a batch, which its number begins. */
export function requestDenial(number: number, denial: Denial): Denial {
  return { ...denial, reason: `request ${number}: ${denial.reason}`, data: { ...denial.data, line: number } }
}

function wrong(number: number, reason: string): Denial {
  return requestDenial(number, deny('invalid_request', reason))
}

/** Checks what the requests of a batch share. */
class Batch {
  readonly #ids = new Set<string>()

  /** Returns what is wrong with a request beside its body; null: nothing. */
  fault(number: number, value: JsonObject, members: ReadonlySet<string>): Denial | null {
    if (number > MAX_REQUESTS) return wrong(number, `a batch has at most ${MAX_REQUESTS} requests`)
    const other = Object.keys(value).find((name) => !members.has(name))
    if (other !== undefined) return wrong(number, `${other.slice(0, 64)} is not a member of a request`)
    const { custom_id: id } = value
    if (typeof id !== 'string' || !CUSTOM_ID.test(id))
      return wrong(number, 'custom_id must have 1 to 64 letters, digits and _ . : -')
    if (this.#ids.has(id)) return wrong(number, 'custom_id is the same as that of another request')
    this.#ids.add(id)
    return null
  }

  /** Returns the body of a request, or what is wrong with it. */
  bodyOf(number: number, bytes: Uint8Array, dialect: Dialect): ModelBody | Denial {
    const body = readModelBody(bytes, dialect)
    if (isDenial(body)) return requestDenial(number, body)
    if (body.request.stream) return wrong(number, 'stream must be false in a batch')
    if (isSet(body.value.background)) return wrong(number, 'background has no meaning in a batch')
    if (body.request.openEnd === null) return body
    return requestDenial(number, deny('provider_hosted_tool', `${body.request.openEnd} cannot be used in a batch`))
  }
}

/**
 * Yields the requests in a file of OpenAI's API, or at last what is wrong with one. `endpoint` is the one that all must call; null: that of the first.
 */
export async function* requestsOfFile(
  chunks: AsyncIterable<Uint8Array>,
  { endpoint, maxBytes }: { readonly endpoint: string | null; readonly maxBytes: number },
): AsyncGenerator<BatchRequest | Denial> {
  const batch = new Batch()
  let called = endpoint
  let number = 0
  try {
    for await (const line of linesOf(chunks, maxBytes)) {
      number++
      const value = objectOf(number, line)
      const fault = isDenial(value) ? value : batch.fault(number, value, LINE)
      if (fault !== null || isDenial(value)) return yield fault ?? wrong(number, 'is not valid')
      called ??= typeof value.url === 'string' ? value.url : null
      const dialect = dialectAt(called)
      if (dialect === null) return yield wrong(number, `url must be one of /v1/${[...ENDPOINTS].join(', /v1/')}`)
      if (value.url !== called || value.method !== 'POST')
        return yield wrong(number, `method and url must be POST and ${called}, as of the whole batch`)
      const [start, end] = findSpan(line, ['body']) ?? [0, 0]
      const body = batch.bodyOf(number, line.subarray(start, end), dialect)
      if (isDenial(body)) return yield body
      yield { number, body, written: (bytes) => Buffer.concat([line.subarray(0, start), bytes, line.subarray(end)]) }
    }
  } catch (error) {
    if (!(error instanceof LineTooLongError)) throw error
    yield wrong(number + 1, `the line is ${error.message} (maxBodyBytes)`)
  }
}

function dialectAt(url: string | null): Dialect | null {
  const method = url?.startsWith('/v1/') === true ? url.slice('/v1/'.length) : ''
  return ENDPOINTS.has(method) ? dialectOf(method) : null
}

function objectOf(number: number, bytes: Uint8Array): JsonObject | Denial {
  try {
    const value = parseStrict(bytes, MESSAGE_LIMITS)
    return isObject(value) ? value : wrong(number, 'is not a JSON object')
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    return wrong(number, `is not strict JSON: ${error.message}`)
  }
}

/** Yields the requests in a body of Anthropic's API, or at last what is wrong with one. */
export async function* requestsOfBody(bytes: Uint8Array): AsyncGenerator<BatchRequest | Denial> {
  const span = findSpan(bytes, ['requests'])
  const batch = new Batch()
  for (const [index, [start, end]] of elementSpans(bytes, span?.[0] ?? 0).entries()) {
    const number = index + 1
    const entry = bytes.subarray(start, end)
    const value = objectOf(number, entry)
    const fault = isDenial(value) ? value : batch.fault(number, value, ENTRY)
    if (fault !== null) return yield fault
    const [from, to] = findSpan(entry, ['params']) ?? [0, 0]
    const body = batch.bodyOf(number, entry.subarray(from, to), messages)
    if (isDenial(body)) return yield body
    yield { number, body, written: (params) => Buffer.concat([entry.subarray(0, from), params, entry.subarray(to)]) }
  }
}

/** Returns what is wrong with a body of Anthropic's API beside its requests; null: nothing. */
export function messageBatchFault(bytes: Uint8Array): Denial | null {
  let value: unknown
  try {
    value = parseStrict(bytes, MESSAGE_LIMITS)
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    return deny('invalid_request', `the body is not strict JSON: ${error.message}`)
  }
  const data = { param: 'requests' }
  if (!isObject(value) || !Array.isArray(value.requests))
    return deny('invalid_request', 'requests must be a list', { data })
  const other = Object.keys(value).find((name) => name !== 'requests')
  return other === undefined ? null : deny('invalid_request', `${other.slice(0, 64)} is not a member of a batch`)
}

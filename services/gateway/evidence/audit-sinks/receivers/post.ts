import { member, readJson } from '@plat/core'
import type { Dialer, Fetched } from '@plat/http'
import { placeOfSink, type SinkConfig } from '../config.ts'
import type { Material } from '../material.ts'
import type { Delivery } from './receiver.ts'

/** Returns a token for the next request. Rejects if there is none. */
export type BearerSource = () => Promise<string>

/** Maximum response size, in bytes. */
const MAX_RESPONSE_BYTES = 256 * 1024
/** An error code or short sentence; any other text may echo sent records and is not repeated. */
const WORDS = /^[A-Za-z0-9_.,:# -]{1,100}$/
/** Caps Retry-After, in seconds. */
const MAX_RETRY_AFTER_SECONDS = 300

export interface HttpParts {
  readonly config: SinkConfig
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly material: Material
}

/** A request with the records of a delivery. */
export interface Posting {
  readonly url: URL
  /** Names are in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface ReceiverResponse {
  readonly status: number
  /** Parsed strict JSON; null for an empty body, undefined if it is not JSON. */
  readonly json: unknown
  /** `status 400 (InvalidParameterException)` */
  readonly description: string
  readonly retryAfterMs: number | undefined
}

/** Posts records; headers of the request override those of `headersFile`. Rejects if there is no response. */
export async function post({ config, dialer, material }: HttpParts, posting: Posting): Promise<ReceiverResponse> {
  const { url, headers, body } = posting
  const fetched = await dialer.fetchBytes(url, 'sink', {
    ...(await material.trust()),
    method: 'POST',
    headers: { ...(await material.headers()), ...headers },
    body,
    maxBytes: MAX_RESPONSE_BYTES,
    timeoutMs: config.timeoutSeconds * 1000,
    jurisdiction: placeOfSink(config),
  })
  return answerOf(fetched)
}

function answerOf({ status, headers, bytes }: Fetched): ReceiverResponse {
  const json = bytes.length === 0 ? null : readJson(bytes)
  const words = wordsOf(json)
  return {
    status,
    json,
    description: words === null ? `status ${status}` : `status ${status} (${words})`,
    retryAfterMs: retryAfterOf(headers['retry-after']),
  }
}

/** `refuses` decides whether a response rejects the records; default: unreadable or too large content. */
export function deliveryOf(
  answer: ReceiverResponse,
  refuses: (answer: ReceiverResponse) => boolean = refusesContent,
): Delivery {
  const { status, description, retryAfterMs } = answer
  if (status >= 200 && status < 300) return { kind: 'accepted' }
  if (refuses(answer)) return { kind: 'refused', reason: description }
  return { kind: 'failed', reason: description, ...(retryAfterMs !== undefined && { retryAfterMs }) }
}

/** Authorization, rate limits and wrong paths are not a fault of the records. */
export function refusesContent({ status }: ReceiverResponse): boolean {
  return status === 400 || status === 413 || status === 415 || status === 422
}

/** Returns a nested member, or undefined. */
export function memberAt(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce(member, value)
}

/** Returns the error text where AWS, Azure, Google and Splunk put it, or null. */
function wordsOf(json: unknown): string | null {
  const places = [['__type'], ['error', 'code'], ['error', 'status'], ['text']]
  const words = places.map((path) => memberAt(json, ...path)).find((found) => typeof found === 'string')
  return typeof words === 'string' && WORDS.test(words) ? words : null
}

function retryAfterOf(text: string | undefined): number | undefined {
  if (text === undefined || !/^\d{1,9}$/.test(text)) return undefined
  return Math.min(Number(text), MAX_RETRY_AFTER_SECONDS) * 1000
}

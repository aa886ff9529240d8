import { readJson } from '@plat/core'
import type { Dialer, Fetched } from '@plat/http'
import { placeOfSink, type SinkConfig } from '../config.ts'
import type { Material } from '../material.ts'
import type { Delivery } from './receiver.ts'

/** Largest answer that is read, in bytes: receivers answer with a few words. */
const MAX_ANSWER_BYTES = 256 * 1024
/** A code or a short sentence of a receiver; anything else may hold what it was sent, and is not told. */
const WORDS = /^[A-Za-z0-9_.,:# -]{1,100}$/
/** A longer wish is not heeded, in seconds. */
const MAX_RETRY_AFTER_SECONDS = 300

/** What a receiver over HTTP needs. */
export interface HttpParts {
  readonly config: SinkConfig
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly material: Material
}

/** A request with the records of one delivery. */
export interface Posting {
  readonly url: URL
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** What a receiver answered. */
export interface ReceiverResponse {
  readonly status: number
  /** Its strict JSON; null: the body is empty; undefined: it is no JSON. */
  readonly json: unknown
  /** `status 400 (InvalidParameterException)` */
  readonly said: string
  readonly retryAfterMs: number | undefined
}

/** Posts records; headers of `headersFile` stand below those of the request. Rejects where there is no answer. */
export async function post({ config, dialer, material }: HttpParts, posting: Posting): Promise<ReceiverResponse> {
  const { url, headers, body } = posting
  const fetched = await dialer.fetchBytes(url, 'sink', {
    ...(await material.trust()),
    method: 'POST',
    headers: { ...(await material.headers()), ...headers },
    body,
    maxBytes: MAX_ANSWER_BYTES,
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
    said: words === null ? `status ${status}` : `status ${status} (${words})`,
    retryAfterMs: retryAfterOf(headers['retry-after']),
  }
}

/** `refuses` says whether an answer is about the records; unless told otherwise: what cannot be read, and what is too large. */
export function deliveryOf(
  answer: ReceiverResponse,
  refuses: (answer: ReceiverResponse) => boolean = refusesContent,
): Delivery {
  const { status, said, retryAfterMs } = answer
  if (status >= 200 && status < 300) return { kind: 'accepted' }
  if (refuses(answer)) return { kind: 'refused', reason: said }
  return { kind: 'failed', reason: said, ...(retryAfterMs !== undefined && { retryAfterMs }) }
}

/** Whoever must not, may not yet, or asks at the wrong place has well-formed records all the same. */
export function refusesContent({ status }: ReceiverResponse): boolean {
  return status === 400 || status === 413 || status === 415 || status === 422
}

/** A member of what may be an object. */
export function memberOf(value: unknown, ...path: readonly string[]): unknown {
  let found = value
  for (const name of path) {
    if (typeof found !== 'object' || found === null) return undefined
    found = Object.getOwnPropertyDescriptor(found, name)?.value
  }
  return found
}

/** Where AWS, Azure, Google and Splunk say what is wrong. */
function wordsOf(json: unknown): string | null {
  const places = [['__type'], ['error', 'code'], ['error', 'status'], ['text']]
  const words = places.map((path) => memberOf(json, ...path)).find((found) => typeof found === 'string')
  return typeof words === 'string' && WORDS.test(words) ? words : null
}

function retryAfterOf(text: string | undefined): number | undefined {
  if (text === undefined || !/^\d{1,9}$/.test(text)) return undefined
  return Math.min(Number(text), MAX_RETRY_AFTER_SECONDS) * 1000
}

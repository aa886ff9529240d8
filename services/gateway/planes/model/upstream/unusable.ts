import { dialFault } from '@plat/http'
import { type Denial, deny, UpstreamError } from '../../../call/index.ts'
import type { UpstreamHead } from '../../wire/exchange.ts'
import { header } from '../../wire/message.ts'
import { failure } from '../../wire/refusal.ts'
import { InvalidResponseError } from '../invalid.ts'

/** Longest wait of a provider that is relayed, in milliseconds. */
const MAX_WAIT_MS = 86_400_000
/** A date of HTTP: RFC 9110, section 5.6.7. */
const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/

/**
 * Returns the denial for a response that is not relayed, such as a refused key, which the response may contain. `movesOn`: another attempt
 * follows the response of a busy endpoint.
 */
export function unusable(
  server: string,
  { status, headers }: UpstreamHead,
  { movesOn, now }: { readonly movesOn: () => boolean; readonly now: number },
): Denial | null {
  const encoding = headers['content-encoding'] ?? 'identity'
  if (encoding !== 'identity') return deny('upstream_error', `the upstream of ${server} sent an encoded answer`)
  const refused = status === 401 || status === 403 || status === 407
  if (refused) return deny('upstream_credential', `the upstream of ${server} does not accept the gateway's key`)
  const odd = status < 200 || (status >= 300 && status < 400) || status >= 500 || (isBusy(status) && movesOn())
  const waitMs = waitOf(headers, now)
  const wait = waitMs === null ? {} : { retryAfterMs: waitMs }
  return odd ? deny('upstream_error', `the upstream of ${server} answered ${status}`, wait) : null
}

/** Returns the time to retry that a provider stated, in milliseconds; null: none, or in a form that is not of HTTP. */
export function waitOf(headers: UpstreamHead['headers'], now: number): number | null {
  const stated = header(headers, 'retry-after')
  if (stated === null) return null
  if (/^\d{1,9}$/.test(stated)) return Math.min(Number(stated) * 1000, MAX_WAIT_MS)
  return HTTP_DATE.test(stated) ? Math.min(Math.max(0, Date.parse(stated) - now), MAX_WAIT_MS) : null
}

/** Returns true for statuses of a busy endpoint, which may accept the request later. */
export function isBusy(status: number): boolean {
  return status === 429 || status === 408
}

/** Anthropic's status of an overloaded service. */
const OVERLOADED = 529

/**
 * Returns true for responses that say that the request was not processed. A 503 without a time to retry may come from a proxy that has lost
 * a request which the provider executed.
 */
export function isUnprocessed({ status, headers }: UpstreamHead): boolean {
  return isBusy(status) || status === OVERLOADED || (status === 503 && header(headers, 'retry-after') !== null)
}

/** Returns true for errors before which no byte of the request was sent. */
export function isUnsent(error: unknown): boolean {
  const fault = dialFault(error instanceof UpstreamError ? error.cause : error)
  return fault === 'refused' || fault === 'name'
}

/** The denial for a failed attempt. */
interface AttemptFailure {
  readonly denial: Denial
  /** False for failures that say nothing about the endpoint. */
  readonly isOfEndpoint: boolean
}

/** Returns the failure of an attempt that ended with `error`; null for a bug of the gateway. `isLate`: its time limit has passed. */
export function failureOf(server: string, error: unknown, isLate: boolean): AttemptFailure | null {
  const upstream = `the upstream of ${server}`
  if (isLate) return { denial: deny('upstream_timeout', `${upstream} did not answer in time`), isOfEndpoint: true }
  // The caller's share of connections is used up.
  if (dialFault(error) === 'busy') return { denial: failure(upstream, error), isOfEndpoint: false }
  if (error instanceof InvalidResponseError)
    return { denial: deny('upstream_error', `${upstream} sent ${error.what}`), isOfEndpoint: true }
  return error instanceof UpstreamError ? { denial: failure(upstream, error), isOfEndpoint: true } : null
}

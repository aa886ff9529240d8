import { dialFault, isDialError } from '@plat/http'
import {
  type Denial,
  deny,
  errorTable,
  type Frame,
  type Head,
  type RequestContext,
  statusOf,
  UpstreamError,
} from '../../call/index.ts'
import type { UpstreamHead } from './exchange.ts'

/** What the headers of a refusal say on every plane: whether and when to try again, and how to authenticate. */
export function refusalHeaders(denial: Denial, resourceMetadata?: string): Record<string, string> {
  const row = errorTable[denial.code]
  const headers: Record<string, string> = { 'content-type': 'application/json' }
  if (!('retry' in row)) headers['x-should-retry'] = 'false'
  if (denial.retryAfterMs !== null) headers['retry-after'] = String(Math.ceil(denial.retryAfterMs / 1000))
  if ('challenge' in row || statusOf(denial) === 401) headers['www-authenticate'] = challenge(denial, resourceMetadata)
  return headers
}

/**
 * `WWW-Authenticate`. Authentication brings its own; a missing scope and a revoked caller get theirs here (RFC 6750, section 3),
 * with `resource_metadata` (RFC 9728) where the gateway knows its public address.
 */
function challenge(denial: Denial, resourceMetadata: string | undefined): string {
  const given = denial.data?.challenge
  if (typeof given === 'string') return given
  const parameters: [string, unknown][] = [
    ['error', denial.code === 'insufficient_scope' ? denial.code : 'invalid_token'],
    ['scope', denial.data?.scope],
    ['resource_metadata', resourceMetadata],
  ]
  const told = parameters.flatMap(([name, value]) =>
    typeof value === 'string' ? [`${name}="${quotable(value)}"`] : [],
  )
  return `Bearer realm="plat", ${told.join(', ')}`
}

/** Quotes and backslashes cannot stand in the names that come here; controls must not reach a header. */
function quotable(text: string): string {
  return text.replace(/["\\]|[^\x20-\x7e]/g, '')
}

/**
 * Why no answer came from `name`, in words that hold no address and no secret. Throws what is no failure of the upstream: a bug of the
 * gateway, which the runner logs with the decision id and answers as `internal`.
 */
export function failure(name: string, error: unknown): Denial {
  if (!(error instanceof UpstreamError) && !isDialError(error)) throw error
  if (error instanceof UpstreamError && error.code === 'upstream_timeout')
    return deny(error.code, `${name} did not answer in time`)
  const cause = error instanceof UpstreamError ? error.cause : error
  switch (dialFault(cause)) {
    case 'timeout':
      return deny('upstream_timeout', `${name} did not answer in time`)
    case 'blocked':
      return deny('upstream_error', `${name} leads to an address that must not be connected to`)
    case 'residency':
      return deny('residency_denied', `${name} leads to where data must not go`)
    case 'name':
      return deny('upstream_error', `the address of ${name} cannot be resolved`)
    case 'refused':
      return deny('upstream_error', `${name} cannot be reached`)
    case 'busy':
      return deny('rate_limited', `all connections to ${name} that a session may hold are in use`)
    case 'tls':
      return deny('upstream_error', `the certificate of ${name} is not accepted`)
    default:
      return deny('upstream_error', `${name} broke the connection`)
  }
}

/** Statuses by which an upstream says that it does not know the gateway. */
const REFUSED: ReadonlySet<number> = new Set([401, 403, 407])

/**
 * Heads that say nothing a client may hear: refused credentials are the gateway's own affair, redirects are never followed, errors of a
 * server are its own, and what is encoded cannot be looked at. Null: the answer can be read.
 */
export function unusable(server: string, { status, headers }: UpstreamHead): Denial | null {
  const encoding = headers['content-encoding'] ?? 'identity'
  if (encoding !== 'identity') return deny('upstream_error', `${server} sent an encoded answer`)
  if (REFUSED.has(status)) return deny('upstream_credential', `${server} does not accept the gateway`)
  const odd = status < 200 || (status >= 300 && status < 400) || status >= 500
  return odd ? deny('upstream_error', `${server} answered ${status}`) : null
}

/** A refusal outside every dialect: `{error, message, requestId}`. */
export function plainRefusal({ id }: RequestContext, denial: Denial): { readonly head: Head; readonly frame: Frame } {
  const body = JSON.stringify({ error: denial.code, message: denial.reason, requestId: id })
  return {
    head: { status: statusOf(denial), headers: refusalHeaders(denial) },
    frame: { role: 'error', value: undefined, raw: Buffer.from(body) },
  }
}

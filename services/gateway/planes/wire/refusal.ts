import { findSpan, isObject, member, withoutElements, withoutMembers } from '@plat/core'
import { dialFault, isDialError, isUnsent } from '@plat/http'
import {
  type Denial,
  deny,
  type ErrorCode,
  errorTable,
  type Frame,
  type Head,
  type RequestContext,
  statusOf,
  UpstreamError,
} from '../../call/index.ts'
import type { UpstreamHead } from './exchange.ts'
import { NestedJson } from './nested.ts'
import { secondsOf } from './refusal-text.ts'

/** Returns the headers of a refusal that all planes have in common: for retries and authentication. */
export function refusalHeaders(denial: Denial, resourceMetadata?: string): Record<string, string> {
  const row = errorTable[denial.code]
  const headers: Record<string, string> = { 'content-type': 'application/json' }
  if (!isWorthRepeating(denial)) headers['x-should-retry'] = 'false'
  if (denial.retryAfterMs !== null) headers['retry-after'] = String(secondsOf(denial.retryAfterMs))
  if ('challenge' in row || statusOf(denial) === 401) headers['www-authenticate'] = challenge(denial, resourceMetadata)
  return headers
}

/** Longest wait that clients of models heed, in milliseconds: they repeat a call with a longer `Retry-After` at once. */
const HEEDED_WAIT_MS = 60_000
/** Codes of calls that only a known wait helps: a used-up limit, and a credential that a person must renew. */
const NEEDS_WAIT: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['rate_limited', 'upstream_credential'])

/** Returns true if a client that repeats the call by itself may succeed. */
function isWorthRepeating({ code, retryAfterMs }: Denial): boolean {
  if (!('retry' in errorTable[code])) return false
  return retryAfterMs === null ? !NEEDS_WAIT.has(code) : retryAfterMs <= HEEDED_WAIT_MS
}

/**
 * Returns `WWW-Authenticate`. Denials of authentication contain it; for a missing scope and a revoked caller it is composed here (RFC 6750,
 * section 3), with `resource_metadata` (RFC 9728) if the gateway's public address is configured.
 */
function challenge(denial: Denial, resourceMetadata: string | undefined): string {
  const given = denial.data?.challenge
  if (typeof given === 'string') return given
  const parameters: [string, unknown][] = [
    ['error', denial.code === 'insufficient_scope' ? denial.code : 'invalid_token'],
    ['scope', denial.data?.scope],
    ['resource_metadata', resourceMetadata],
  ]
  const members = parameters.flatMap(([name, value]) =>
    typeof value === 'string' ? [`${name}="${quotable(value)}"`] : [],
  )
  return `Bearer realm="plat", ${members.join(', ')}`
}

/** Removes characters that are invalid in a quoted string. Names contain no quotes and backslashes; control characters are removed. */
function quotable(text: string): string {
  return text.replace(/["\\]|[^\x20-\x7e]/g, '')
}

/** Time after which a connection of a busy session may be free, in milliseconds. */
const BUSY_MS = 1_000

/**
 * Returns the denial for a failed request to `name`, without addresses and secrets. Rethrows errors that are not failures of the upstream,
 * which are bugs: the runner logs them with the decision id and responds with `internal`.
 */
export function failure(name: string, error: unknown): Denial {
  if (!(error instanceof UpstreamError) && !isDialError(error)) throw error
  if (error instanceof UpstreamError && error.code === 'upstream_timeout')
    return deny(error.code, `${name} did not answer in time`)
  const cause = error instanceof UpstreamError ? error.cause : error
  const unsent: Pick<Denial, 'unsent'> = isUnsent(cause) ? { unsent: true } : {}
  switch (dialFault(cause)) {
    case 'timeout':
      return deny('upstream_timeout', `${name} did not answer in time`)
    case 'blocked':
      return deny('upstream_error', `${name} leads to an address that must not be connected to`, unsent)
    case 'residency':
      return deny('residency_denied', `${name} leads to where data must not go`)
    case 'name':
      return deny('upstream_error', `the address of ${name} cannot be resolved`, unsent)
    case 'refused':
      return deny('upstream_error', `${name} cannot be reached`, unsent)
    case 'busy':
      return deny('rate_limited', `all connections to ${name} that a session may hold are in use`, {
        retryAfterMs: BUSY_MS,
      })
    case 'tls':
      return deny('upstream_error', `the certificate of ${name} is not accepted`)
    default:
      return deny('upstream_error', `${name} broke the connection`)
  }
}

/** Statuses with which an upstream refuses the gateway's credential. */
const REFUSED: ReadonlySet<number> = new Set([401, 403, 407])

/**
 * Returns a denial for a response that is not relayed: a refused credential, a redirect, which is never followed, a server error, or an
 * encoded body, which cannot be checked. Returns null when the response can be read.
 */
export function unusable(server: string, { status, headers }: UpstreamHead): Denial | null {
  const encoding = headers['content-encoding'] ?? 'identity'
  if (encoding !== 'identity') return deny('upstream_error', `${server} sent an encoded answer`)
  if (REFUSED.has(status)) return deny('upstream_credential', `${server} does not accept the gateway`)
  const odd = status < 200 || (status >= 300 && status < 400) || status >= 500
  return odd ? deny('upstream_error', `${server} answered ${status}`) : null
}

/** Renders a refusal without a protocol's format: `{error, message, requestId}`. */
export function plainRefusal({ id }: RequestContext, denial: Denial): { readonly head: Head; readonly frame: Frame } {
  const body = JSON.stringify({ error: denial.code, message: denial.reason, requestId: id })
  return {
    head: { status: statusOf(denial), headers: refusalHeaders(denial) },
    frame: { role: 'error', value: undefined, raw: Buffer.from(body) },
  }
}

/** Member of a tool result's `_meta` with the refusal for programs. */
export const DENIAL_MEMBER = 'plat.dev/denial'

/** Domain of reasons that the gateway defines, in the ErrorInfo of A2A. */
export const OWN_DOMAIN = 'plat.dev'

type Path = readonly string[]

/** Longest list of ErrorInfos that is relayed in part: a longer one is removed. */
const MAX_INFOS = 1000

/**
 * Returns the response of an upstream without what only the gateway may state: its error codes, where clients read them, and the member of a
 * tool result with a refusal. Otherwise an upstream could, for instance, send a user to its own page to connect an account. `value` is the
 * parsed response. Returns the same bytes if there is nothing to remove.
 */
export function withoutForgedRefusal(json: Uint8Array, value: unknown): Uint8Array {
  if (!mayHold(value)) return json
  const infos = member(member(value, 'error'), 'data')
  const isLong = Array.isArray(infos) && infos.length > MAX_INFOS
  const rest = Array.isArray(infos) && !isLong && infos.some(isForgedInfo) ? withoutInfos(json, infos) : json
  const paths = isLong ? [...forgedIn(value), ['error', 'data']] : forgedIn(value)
  return paths.length === 0 ? rest : withoutMembers(rest, paths)
}

/** Most responses have none of them. */
function mayHold(value: unknown): boolean {
  const result = member(value, 'result')
  return (
    isSet(member(value, 'error')) || isSet(member(result, '_meta')) || isSet(member(member(result, 'result'), '_meta'))
  )
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null
}

/** The members to remove from a response. */
function forgedIn(response: unknown): readonly Path[] {
  const error = member(response, 'error')
  const nested = new NestedJson()
  // Clients expose either the whole body as their error or the object in it, and read both in the same way.
  return [...forgedHere(response, [], nested), ...(isObject(error) ? forgedHere(error, ['error'], nested) : [])]
}

function forgedHere(body: unknown, at: Path, nested: NestedJson): readonly Path[] {
  const error = member(body, 'error')
  const data = member(error, 'data')
  const paths: Path[] = []
  if (member(member(member(body, 'result'), '_meta'), DENIAL_MEMBER) !== undefined)
    paths.push([...at, 'result', '_meta', DENIAL_MEMBER])
  // The result of a task.
  if (member(member(member(member(body, 'result'), 'result'), '_meta'), DENIAL_MEMBER) !== undefined)
    paths.push([...at, 'result', 'result', '_meta', DENIAL_MEMBER])
  if (isOwnCode(error)) paths.push([...at, 'error'])
  if (isOwnCode(member(error, 'code'))) paths.push([...at, 'error', 'code'])
  if (isOwnCode(member(data, 'error'))) paths.push([...at, 'error', 'data', 'error'])
  if (holdsRefusal(member(data, 'text'), nested)) paths.push([...at, 'error', 'data', 'text'])
  return paths
}

/**
 * Whether a text is a response that states a refusal, as the MCP client of revision 2026-07-28 exposes those of the HTTP level. An object that
 * is not strict JSON, or exceeds the limits, counts as one: a client could read it, and parsing it here could take seconds.
 */
function holdsRefusal(text: unknown, nested: NestedJson): boolean {
  if (typeof text !== 'string' || !text.trimStart().startsWith('{')) return false
  const value = nested.parse(text)
  if (value === undefined) return true
  const infos = member(member(value, 'error'), 'data')
  return forgedHere(value, [], nested).length > 0 || (Array.isArray(infos) && infos.some(isForgedInfo))
}

function isForgedInfo(info: unknown): boolean {
  return member(info, 'domain') === OWN_DOMAIN || isOwnCode(member(member(info, 'metadata'), 'error'))
}

function withoutInfos(json: Uint8Array, infos: readonly unknown[]): Uint8Array {
  const span = findSpan(json, ['error', 'data'])
  return span === null ? json : withoutElements(json, span[0], (index) => !isForgedInfo(infos[index]))
}

function isOwnCode(code: unknown): boolean {
  return typeof code === 'string' && Object.hasOwn(errorTable, code)
}

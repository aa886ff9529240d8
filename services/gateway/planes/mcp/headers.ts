import type { IncomingHttpHeaders } from 'node:http'
import { isObject, member } from '@plat/core'
import type { RequestHeaders } from '@plat/http'
import { type Denial, deny } from '../../call/index.ts'
import { header } from '../wire/message.ts'
import { ASSUMED_REVISION, type Era, isModernRevision } from './classify.ts'
import { type McpRequest, META_CAPABILITIES, META_VERSION } from './message.ts'

/** JSON-RPC "invalid params": a required member of `_meta` is missing or has the wrong type. */
const INVALID_PARAMS = -32602

export interface Version {
  readonly era: Era
  readonly revision: string
}

/**
 * Returns the revision of a message, or a denial when the version in the body and the version header differ (revision 2026-07-28,
 * basic/versioning). For a GET or DELETE `meta` is undefined. Does not check that the revision is supported.
 */
export function claimedVersion(headers: IncomingHttpHeaders, method: unknown, meta: unknown): Version | Denial {
  const named = header(headers, 'mcp-protocol-version')
  const claimed = member(meta, META_VERSION)
  if (claimed === undefined && (named === null || !isModernRevision(named))) {
    // No version is negotiated before the handshake, so its header is ignored.
    const handshake = method === 'initialize'
    return { era: 'legacy', revision: named === null || handshake ? ASSUMED_REVISION : named }
  }
  if (claimed !== undefined && typeof claimed !== 'string') return invalidMeta(META_VERSION, 'must be a string')
  if (named === null) return mismatch('MCP-Protocol-Version', '', claimed ?? '')
  if (claimed !== undefined && claimed !== named) return mismatch('MCP-Protocol-Version', named, claimed)
  // A version in each message is the modern form, whatever the version is.
  return { era: 'modern', revision: named }
}

/** Checks the required members of `params._meta` in a request of revision 2026-07-28. */
export function checkMeta(meta: unknown): Denial | null {
  if (member(meta, META_VERSION) === undefined) return invalidMeta(META_VERSION, 'is missing')
  const capabilities = member(meta, META_CAPABILITIES)
  return isObject(capabilities) ? null : invalidMeta(META_CAPABILITIES, 'must be an object')
}

/** Checks the mirrored headers of revision 2026-07-28, which must have the same values as the body. */
export function checkMirrors(headers: IncomingHttpHeaders, method: string, name: string | null): Denial | null {
  const mirroredMethod = header(headers, 'mcp-method')
  if (mirroredMethod !== method) return mismatch('Mcp-Method', mirroredMethod ?? '', method)
  if (name === null) return null
  const mirroredName = header(headers, 'mcp-name')
  const decoded = mirroredName === null ? null : decodeMirrored(mirroredName)
  return decoded === name ? null : mismatch('Mcp-Name', mirroredName ?? '', name)
}

/**
 * Checks that each mirrored parameter repeats a value of the arguments. Only the server knows which one. A header with any other value
 * would reach the server unseen by policies.
 */
export function checkParameters(headers: IncomingHttpHeaders, args: unknown): Denial | null {
  let values: ReadonlySet<unknown> | null = null
  for (const name in headers) {
    if (!name.startsWith(PARAMETER_PREFIX)) continue
    values ??= scalarsIn(args)
    const text = header(headers, name) ?? ''
    const value = decodeMirrored(text) ?? text
    const isThere = values.has(value) || (value !== '' && values.has(Number(value)))
    if (!isThere) return deny('header_mismatch', `header ${name} repeats no value of params.arguments`)
  }
  return null
}

/** Returns the strings and numbers in a JSON value, and booleans as strings. */
function scalarsIn(value: unknown, into = new Set<unknown>()): ReadonlySet<unknown> {
  if (typeof value === 'object' && value !== null) for (const one of Object.values(value)) scalarsIn(one, into)
  else into.add(typeof value === 'boolean' ? String(value) : value)
  return into
}

const SENTINEL = /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/
const VISIBLE_ASCII = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/

/** Decodes a mirrored header value (`=?base64?…?=`). Returns null when the encoding is invalid. */
export function decodeMirrored(value: string): string | null {
  if (!value.startsWith('=?base64?')) return value
  const encoded = SENTINEL.exec(value)?.[1]
  if (encoded === undefined) return null
  const bytes = Buffer.from(encoded, 'base64')
  if (bytes.toString('base64') !== encoded) return null
  const text = bytes.toString('utf8')
  return Buffer.from(text, 'utf8').equals(bytes) ? text : null
}

/** Returns the header value that mirrors a text: the text itself if it is valid in a header, otherwise base64 between sentinels. */
export function encodeMirrored(text: string): string {
  const plain = VISIBLE_ASCII.test(text) && !text.startsWith('=?base64?')
  return plain ? text : `=?base64?${Buffer.from(text, 'utf8').toString('base64')}?=`
}

function mismatch(name: string, inHeader: string, inBody: string): Denial {
  const problem = inHeader === '' ? `header ${name} is missing or empty` : `header ${name} and the body differ`
  return deny('header_mismatch', `${problem}; the body says ${JSON.stringify(inBody)}`)
}

/** Returns the error -32022 with the supported versions of the client's era, or all supported versions if there are none. */
export function unsupported({ era, revision: requested }: Version, revisions: readonly string[]): Denial {
  const sameWay = revisions.filter((revision) => era === 'legacy' || isModernRevision(revision))
  const data = { supported: [...(sameWay.length > 0 ? sameWay : revisions)], requested }
  return deny('unsupported_version', `protocol version ${JSON.stringify(requested)} is not supported`, { data })
}

function invalidMeta(name: string, problem: string): Denial {
  return deny('invalid_request', `params._meta["${name}"] ${problem}`, { data: { rpc: INVALID_PARAMS } })
}

/** Prefix of mirrored parameters of revision 2026-07-28. */
const PARAMETER_PREFIX = 'mcp-param-'

/**
 * Returns the headers of the upstream request. Version, method and name are written from the validated message. Other headers of the
 * client are not forwarded. A single literal, in which undefined omits a header, avoids the cost of adding members one by one.
 */
export function upstreamHeaders(headers: IncomingHttpHeaders, request: McpRequest): RequestHeaders {
  const { kind, era, revision, method, name, session, lastEvent } = request
  const modern = era === 'modern'
  const saysVersion = modern || (method !== 'initialize' && header(headers, 'mcp-protocol-version') !== null)
  const upstream: RequestHeaders = {
    'user-agent': 'plat-gateway',
    'accept-encoding': 'identity',
    accept: header(headers, 'accept') ?? undefined,
    traceparent: header(headers, 'traceparent') ?? undefined,
    tracestate: header(headers, 'tracestate') ?? undefined,
    'content-type': kind === 'listen' || kind === 'end' ? undefined : 'application/json',
    'mcp-protocol-version': saysVersion ? revision : undefined,
    'mcp-method': modern ? method : undefined,
    'mcp-name': modern && name !== null ? mirroredName(headers, name) : undefined,
    'mcp-session-id': modern ? undefined : session?.id,
    'last-event-id': modern || lastEvent === null ? undefined : inUtf8(lastEvent.id),
  }
  if (modern) copyParameters(headers, upstream)
  return upstream
}

/** Returns the header value for a name. Most requests have the name itself as their header, which is then a valid value. */
function mirroredName(headers: IncomingHttpHeaders, name: string): string {
  return headers['mcp-name'] === name && !name.startsWith('=?base64?') ? name : encodeMirrored(name)
}

/** Encodes an event id as UTF-8 in a header value (WHATWG HTML, "Server-sent events"). */
function inUtf8(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1')
}

/** Returns the decoded values of mirrored parameters. */
export function mirroredParameters(headers: IncomingHttpHeaders): readonly string[] {
  const texts: string[] = []
  for (const name in headers) {
    if (!name.startsWith(PARAMETER_PREFIX)) continue
    const value = header(headers, name) ?? ''
    texts.push(decodeMirrored(value) ?? value)
  }
  return texts
}

function copyParameters(headers: IncomingHttpHeaders, upstream: RequestHeaders): void {
  for (const name in headers) {
    if (name.startsWith(PARAMETER_PREFIX)) upstream[name] = header(headers, name) ?? undefined
  }
}

import type { IncomingHttpHeaders } from 'node:http'
import { type Dialer, ResponseTooLargeError } from '@plat/http'
import type { FastifyReply } from 'fastify'
import { AdminError } from '../../admin/index.ts'

/** Longest response of a sandbox, in bytes. */
const MAX_PAGE_BYTES = 4 * 1024 * 1024
const PAGE_MS = 15_000
/** Longest path with its query, in characters. */
const MAX_PATH_CHARS = 2048

/**
 * A document of a sandbox must not act in the console, which has the same origin: it gets another origin, runs no script, loads nothing, and a browser
 * saves it instead of showing it.
 */
const CONTAINED = {
  'content-security-policy': "sandbox; default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  'content-disposition': 'attachment',
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
} as const

export interface SandboxPage {
  readonly status: number
  readonly type: string
  readonly bytes: Uint8Array
}

/** Returns the address of `path` below an endpoint. Throws `invalid_request` for one that leads elsewhere, such as by `..`. */
export function pageUrl(endpoint: URL, path: string): URL {
  const base = endpoint.pathname.endsWith('/') ? endpoint.pathname : `${endpoint.pathname}/`
  const url = path.length > MAX_PATH_CHARS ? null : URL.parse(`${endpoint.origin}${base}${path}`)
  if (url !== null && url.origin === endpoint.origin && url.pathname.startsWith(base) && !/[\\#]/.test(path)) return url
  throw new AdminError('invalid_request', 'the path must lead to a file below the endpoint of the view')
}

/** Requests a page of a sandbox, without any header of the caller. Throws AdminError if there is none that can be passed on. */
export async function fetchPage(url: URL, caller: string, dialer: Pick<Dialer, 'fetchBytes'>): Promise<SandboxPage> {
  const options = { maxBytes: MAX_PAGE_BYTES, timeoutMs: PAGE_MS, caller }
  const fetched = await dialer.fetchBytes(url, 'sandbox', options).catch((error: unknown) => {
    const isTooLarge = error instanceof ResponseTooLargeError
    const why = isTooLarge ? `has sent more than ${MAX_PAGE_BYTES} bytes` : 'cannot be reached'
    throw new AdminError('upstream_error', `the sandbox ${why}`)
  })
  const { status, headers, bytes } = fetched
  if (status >= 300 && status < 400) throw new AdminError('upstream_error', 'the sandbox answers with a redirect')
  return { status, type: typeOf(headers), bytes }
}

/** Sends a page with no header of the sandbox but its type. */
export function sendPage(reply: FastifyReply, { status, type, bytes }: SandboxPage): FastifyReply {
  return reply
    .code(status)
    .headers({ ...CONTAINED, 'content-type': type })
    .send(Buffer.from(bytes))
}

/** A media type without parameters, except a character set (RFC 9110, section 8.3.1). */
const MEDIA_TYPE = /^[\w!#$&^.+-]{1,64}\/[\w!#$&^.+-]{1,64}(?:; ?charset=[\w-]{1,32})?$/

function typeOf({ 'content-type': type = '' }: IncomingHttpHeaders): string {
  return MEDIA_TYPE.test(type) ? type : 'application/octet-stream'
}

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { HttpFault } from './errors.ts'
import { isLoopbackHost } from './head.ts'

/** How long a browser may cache a preflight response, in seconds. */
const PREFLIGHT_SECONDS = 600

const METHODS = 'GET, POST, DELETE'

/** Request headers that web pages may send: credentials, protocol headers, trace context. */
const REQUEST_HEADERS = [
  'authorization',
  'content-type',
  'accept',
  'dpop',
  'last-event-id',
  'mcp-session-id',
  'mcp-protocol-version',
  'mcp-method',
  'mcp-name',
  'x-api-key',
  'anthropic-version',
  'anthropic-beta',
  'traceparent',
  'tracestate',
].join(', ')

/** Response headers that web pages may read. */
const RESPONSE_HEADERS = [
  'mcp-session-id',
  'mcp-protocol-version',
  'www-authenticate',
  'retry-after',
  'x-plat-request-id',
  'x-plat-decision-id',
  'x-plat-overhead-ms',
].join(', ')

/**
 * Decides on a request from a web page (Fetch standard, "CORS protocol"): response headers for a listed origin, a response for its preflight, and a
 * fault for any other origin, because a page must not act with the network access of its reader.
 */
export function judgeOrigin(
  origins: ReadonlySet<string>,
  request: IncomingMessage,
  response: ServerResponse,
): HttpFault | 'answered' | null {
  const { origin } = request.headers
  if (origin === undefined || isOwnPage(origin, request.headers.host)) return null
  if (!origins.has(origin)) return { status: 403, code: 'forbidden', message: 'This origin may not call here.' }
  response.setHeader('access-control-allow-origin', origin)
  response.setHeader('vary', 'origin')
  if (request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined) {
    response.setHeader('access-control-expose-headers', RESPONSE_HEADERS)
    return null
  }
  response.writeHead(204, {
    'access-control-allow-methods': METHODS,
    'access-control-allow-headers': REQUEST_HEADERS,
    'access-control-max-age': String(PREFLIGHT_SECONDS),
  })
  response.end()
  return 'answered'
}

const NO_NAMES: ReadonlySet<string> = new Set()

/**
 * Whether a page of this listener sent the request. Only loopback names count: under any other name the page may be from somewhere else whose name
 * was pointed at this address (DNS rebinding).
 */
function isOwnPage(origin: string, host: string | undefined): boolean {
  return isLoopbackHost(host, NO_NAMES) && (origin === `http://${host}` || origin === `https://${host}`)
}

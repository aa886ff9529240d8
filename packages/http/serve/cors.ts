import type { IncomingMessage, ServerResponse } from 'node:http'
import type { HttpFault } from './errors.ts'

/** How long a browser may keep the answer to its preflight, in seconds. */
const PREFLIGHT_SECONDS = 600

const METHODS = 'GET, POST, DELETE'

/** Headers that pages may send: credentials, the protocols' own, and trace context. */
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

/** Headers of an answer that pages may read. */
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
 * What a request from a web page gets (Fetch standard, "CORS protocol"): headers on the response for a listed origin, an
 * answer for its preflight, a fault for any other origin, since no page may act here with what its reader can reach.
 */
export function judgeOrigin(
  origins: ReadonlySet<string>,
  request: IncomingMessage,
  response: ServerResponse,
): HttpFault | 'answered' | null {
  const { origin } = request.headers
  if (origin === undefined) return null
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

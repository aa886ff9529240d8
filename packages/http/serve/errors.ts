import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'

/** A refusal at the HTTP level, before any protocol handler sees the request. */
export interface HttpFault {
  readonly status: number
  /** Code from the error table, such as `not_found`. */
  readonly code: string
  /** One sentence for the caller. */
  readonly message: string
}

/** Renders a fault as the JSON body of a service. Default: `{error, message, requestId}`. */
export type RenderFault = (fault: HttpFault, requestId: string) => Readonly<Record<string, unknown>>

export const renderFault: RenderFault = (fault, requestId) => ({
  error: fault.code,
  message: fault.message,
  requestId,
})

export const faults = {
  malformed: { status: 400, code: 'invalid_request', message: 'The request is not well-formed HTTP.' },
  notFound: { status: 404, code: 'not_found', message: 'There is nothing at this path.' },
  method: { status: 405, code: 'method_not_allowed', message: 'This path does not support this method.' },
  chunks: { status: 400, code: 'invalid_request', message: 'The request body comes in too many small chunks.' },
  timeout: { status: 408, code: 'request_timeout', message: 'The request did not arrive in time.' },
  tooLarge: { status: 413, code: 'body_too_large', message: 'The request body is too large.' },
  mediaType: { status: 415, code: 'unsupported_media_type', message: 'This path does not support this content type.' },
  encoding: { status: 415, code: 'unsupported_media_type', message: 'The body must not be encoded: send it as it is.' },
  headTooLarge: { status: 431, code: 'invalid_request', message: 'The request head is too large.' },
  internal: { status: 500, code: 'internal', message: 'The request failed on our side.' },
  tunnel: { status: 501, code: 'not_built', message: 'This listener opens no tunnels.' },
  leaving: { status: 503, code: 'state_unavailable', message: 'This listener is shutting down: try again.' },
} as const satisfies Record<string, HttpFault>

/** Sends a fault and closes the connection: bytes after a malformed request cannot be trusted. */
export function sendFault(response: ServerResponse, fault: HttpFault, body: Readonly<Record<string, unknown>>): void {
  const text = JSON.stringify(body)
  response.writeHead(fault.status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    connection: 'close',
  })
  response.end(text)
}

/** Like `sendFault`, for the cases without a response object: an unparsed head, or CONNECT. */
export function writeFault(
  socket: Duplex,
  fault: HttpFault,
  body: Readonly<Record<string, unknown>>,
  id: string,
): void {
  const text = JSON.stringify(body)
  const head = [
    `HTTP/1.1 ${fault.status} ${STATUS_CODES[fault.status] ?? ''}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(text)}`,
    'cache-control: no-store',
    `x-plat-request-id: ${id}`,
    'connection: close',
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n${text}`)
}

/** Returns the fault of an error of Node's parser. */
export function parserFault(code: string | undefined): HttpFault {
  if (code === 'HPE_HEADER_OVERFLOW') return faults.headTooLarge
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return faults.timeout
  return faults.malformed
}

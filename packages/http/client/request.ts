/** A request as it goes out. `Host` and `Content-Length` are added. */
export interface ClientRequest {
  readonly method: string
  /** Path and query. */
  readonly path: string
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array | null
  /** Wait for the response head once the request is out, in milliseconds; 0: for ever. */
  readonly headersTimeoutMs: number
  /** How long the body may pause, in milliseconds; 0: for ever. Time in which the reader holds it back does not count. */
  readonly pauseTimeoutMs: number
}

/** Bodies up to this many bytes leave in one piece with the head: copying them costs less than a second write. */
export const JOIN_BYTES = 64 * 1024

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const TARGET = /^\/[\x21-\x7e]*$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** The head as latin-1 text. Throws a `TypeError` on what would not arrive as it is meant; values are not quoted. */
export function requestHead(request: ClientRequest, host: string): string {
  const { method, path, headers, body } = request
  if (!TOKEN.test(method) || !TARGET.test(path))
    throw new TypeError('The method or the path cannot stand in a request.')
  let head = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\n`
  for (const name in headers) {
    const value = headers[name]
    if (value === undefined) continue
    if (!TOKEN.test(name) || !VALUE.test(value))
      throw new TypeError(`The header ${JSON.stringify(name)} cannot be sent.`)
    head += `${name}: ${value}\r\n`
  }
  if (body !== null) head += `content-length: ${body.length}\r\n`
  // A server may wait for a length where the method usually has a body (RFC 9110, section 8.6).
  else if (method === 'POST' || method === 'PUT' || method === 'PATCH') head += 'content-length: 0\r\n'
  return `${head}\r\n`
}

/** Head and body as one piece. */
export function joined(head: string, body: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(head.length + body.length)
  bytes.write(head, 0, 'latin1')
  bytes.set(body, head.length)
  return bytes
}

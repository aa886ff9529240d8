/** Headers by lower-case name; undefined values are not sent. */
export interface RequestHeaders {
  [name: string]: string | undefined
}

export interface StreamedBody {
  /** Its bytes. */
  readonly length: number
  /** Returns its bytes from the beginning; called once for each time that the request is sent. Fails if there are fewer than `length`. */
  chunks(): AsyncIterable<Uint8Array>
}

/** An outgoing request. `Host` and `Content-Length` are added. */
export interface ClientRequest {
  readonly method: string
  /** Path and query. */
  readonly path: string
  readonly headers: Readonly<RequestHeaders>
  readonly body: Uint8Array | StreamedBody | null
  /** Maximum wait for the response head after the request was sent, and for the server to accept more of a streamed body, in milliseconds; 0: unlimited. */
  readonly headersTimeoutMs: number
  /** Maximum silence within the body, in milliseconds; 0: unlimited. Time in which the reader is paused does not count. */
  readonly pauseTimeoutMs: number
  /** Identifies the caller, such as a session, for its share of connections. Absent: only the total limit applies. */
  readonly caller?: string | undefined
}

/** Bodies up to this many bytes are sent in one piece with the head: copying them costs less than a second write. */
export const JOIN_BYTES = 64 * 1024

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const TARGET = /^\/[\x21-\x7e]*$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** Number of cached header lines and maximum characters of a value: most of a head equals that of the previous request. */
const MAX_KNOWN_NAMES = 16
const MAX_KNOWN_LENGTH = 2048

/** Builds the heads of requests to one origin. Lines validated for the previous head are not validated again. */
export class RequestHeads {
  readonly #host: string
  readonly #known = new Map<string, { readonly value: string; readonly line: string }>()
  #method: string | null = null
  #path = ''
  #opening = ''

  /** `host` is the value of the `Host` header. */
  constructor(host: string) {
    this.#host = host
  }

  /** Returns a head as latin-1 text. Throws TypeError on values that could not be sent unchanged; the message does not quote values. */
  of({ method, path, headers, body }: ClientRequest): string {
    let head = this.#open(method, path)
    for (const name in headers) {
      const value = headers[name]
      if (value !== undefined) head += this.#line(name, value)
    }
    if (body !== null) head += `content-length: ${body.length}\r\n`
    // A server may expect a length where the method usually has a body (RFC 9110, section 8.6).
    else if (method === 'POST' || method === 'PUT' || method === 'PATCH') head += 'content-length: 0\r\n'
    return `${head}\r\n`
  }

  #open(method: string, path: string): string {
    if (method === this.#method && path === this.#path) return this.#opening
    if (!TOKEN.test(method) || !TARGET.test(path))
      throw new TypeError('The method or the path is not valid in a request.')
    const opening = `${method} ${path} HTTP/1.1\r\nhost: ${this.#host}\r\n`
    if (path.length > MAX_KNOWN_LENGTH) return opening
    this.#method = method
    this.#path = path
    this.#opening = opening
    return opening
  }

  #line(name: string, value: string): string {
    const known = this.#known.get(name)
    if (known !== undefined && known.value === value) return known.line
    if (!TOKEN.test(name) || !VALUE.test(value))
      throw new TypeError(`The header ${JSON.stringify(name)} cannot be sent.`)
    const line = `${name}: ${value}\r\n`
    const hasRoom = known !== undefined || this.#known.size < MAX_KNOWN_NAMES
    if (hasRoom && value.length <= MAX_KNOWN_LENGTH) this.#known.set(name, { value, line })
    return line
  }
}

export function joined(head: string, body: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(head.length + body.length)
  bytes.write(head, 0, 'latin1')
  bytes.set(body, head.length)
  return bytes
}

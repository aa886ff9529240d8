/** Headers by name in lower case; undefined: it is not sent. */
export interface RequestHeaders {
  [name: string]: string | undefined
}

/** A request as it goes out. `Host` and `Content-Length` are added. */
export interface ClientRequest {
  readonly method: string
  /** Path and query. */
  readonly path: string
  readonly headers: Readonly<RequestHeaders>
  readonly body: Uint8Array | null
  /** Wait for the response head once the request is out, in milliseconds; 0: for ever. */
  readonly headersTimeoutMs: number
  /** How long the body may pause, in milliseconds; 0: for ever. Time in which the reader holds it back does not count. */
  readonly pauseTimeoutMs: number
  /** Who the request is sent for, such as a session: it has a share of the connections. Absent: only the total holds. */
  readonly caller?: string | undefined
}

/** Bodies up to this many bytes leave in one piece with the head: copying them costs less than a second write. */
export const JOIN_BYTES = 64 * 1024

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const TARGET = /^\/[\x21-\x7e]*$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** Header names whose last lines are remembered, and characters of a value: most of a head is what it was in the request before. */
const MAX_KNOWN_NAMES = 16
const MAX_KNOWN_LENGTH = 2048

/** Makes the heads of the requests to one origin. What was checked and written for the last one is not checked again. */
export class RequestHeads {
  readonly #host: string
  readonly #known = new Map<string, { readonly value: string; readonly line: string }>()
  #method: string | null = null
  #path = ''
  #opening = ''

  /** `host`: what the `Host` header says. */
  constructor(host: string) {
    this.#host = host
  }

  /** A head as latin-1 text. Throws a `TypeError` on what would not arrive as it is meant; values are not quoted. */
  of({ method, path, headers, body }: ClientRequest): string {
    let head = this.#open(method, path)
    for (const name in headers) {
      const value = headers[name]
      if (value !== undefined) head += this.#line(name, value)
    }
    if (body !== null) head += `content-length: ${body.length}\r\n`
    // A server may wait for a length where the method usually has a body (RFC 9110, section 8.6).
    else if (method === 'POST' || method === 'PUT' || method === 'PATCH') head += 'content-length: 0\r\n'
    return `${head}\r\n`
  }

  #open(method: string, path: string): string {
    if (method === this.#method && path === this.#path) return this.#opening
    if (!TOKEN.test(method) || !TARGET.test(path))
      throw new TypeError('The method or the path cannot stand in a request.')
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

/** Head and body as one piece. */
export function joined(head: string, body: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(head.length + body.length)
  bytes.write(head, 0, 'latin1')
  bytes.set(body, head.length)
  return bytes
}

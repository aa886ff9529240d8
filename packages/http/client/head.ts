import type { IncomingHttpHeaders } from 'node:http'

/** A response that is no HTTP/1.x message, or one that readers could understand differently. */
export class BadResponse extends Error {
  constructor(why: string) {
    super(`The response cannot be read: ${why}.`)
    this.name = 'BadResponse'
  }
}

export interface ResponseHead {
  readonly status: number
  /** By lower-case name. Repeated ones are joined by `, `; `set-cookie` is a list. */
  readonly headers: IncomingHttpHeaders
  /** Bytes of the body; `open`: until the connection ends. Says nothing where method or status forbid a body. */
  readonly length: number | 'chunked' | 'open'
  /** Whether the connection may carry another request. */
  readonly keeps: boolean
  /** Milliseconds of `Keep-Alive: timeout`; null: not said. */
  readonly hintMs: number | null
}

/** RFC 9112, section 4. The space before an empty reason is often left out. */
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?\r\n/
/** A folded line (obs-fold) begins with a space, which no name has. */
const LINES = /^(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*\r\n)*$/
const LENGTH = /^\d{1,15}$/
const CLOSE = /(?:^|,)[\t ]*close[\t ]*(?:,|$)/i
const HINT = /(?:^|[,\t ])timeout=(\d{1,6})(?:$|[,\t ])/i

const SPACE = 32
const TAB = 9

/** Longest head that is remembered, in characters: each connection holds one. */
const MAX_KNOWN_LENGTH = 2048

/** A head, cut at its length. */
interface Known {
  readonly head: ResponseHead
  /** Up to the colon of `Content-Length`, or all of it. */
  readonly before: string
  /** From the CR LF of that line on; null: it says no length. */
  readonly after: string | null
}

/**
 * Reads the heads of one connection. Those of one server in one second mostly differ in nothing but the length that they say: what has
 * just been read is known again, and only its length is read.
 */
export class HeadReader {
  #known: Known | null = null
  /** Where the value of `Content-Length` begins in the head that is being read; 0: nowhere. */
  #lengthAt = 0

  /** Takes status line and headers, each line with its CR LF; throws a `BadResponse`. */
  read(text: string): ResponseHead {
    const again = this.#known === null ? null : readAgain(this.#known, text)
    if (again !== null) return again
    const head = this.#read(text)
    // A list could be changed by whoever gets it.
    const isKept = text.length <= MAX_KNOWN_LENGTH && head.headers['set-cookie'] === undefined
    this.#known = isKept ? cut(head, text, this.#lengthAt) : null
    return head
  }

  #read(text: string): ResponseHead {
    const match = STATUS_LINE.exec(text)
    if (match === null) throw new BadResponse('its status line is malformed')
    const headers = this.#readHeaders(text, match[0].length)
    const isOld = match[1] === '0'
    const hint = headers['keep-alive']
    return {
      status: Number(match[2]),
      headers,
      length: lengthOf(headers, isOld),
      keeps: !isOld && !(headers.connection !== undefined && CLOSE.test(headers.connection)),
      hintMs: typeof hint === 'string' ? hintOf(hint) : null,
    }
  }

  #readHeaders(text: string, from: number): IncomingHttpHeaders {
    if (!LINES.test(text.slice(from))) throw new BadResponse('a line of its head is malformed')
    const headers: IncomingHttpHeaders = {}
    this.#lengthAt = 0
    for (let at = from; at < text.length; ) {
      const end = text.indexOf('\r\n', at)
      const colon = text.indexOf(':', at)
      const name = text.slice(at, colon).toLowerCase()
      const value = trimmed(text, colon + 1, end)
      at = end + 2
      if (name === 'content-length') this.#lengthAt = colon + 1
      if (name === 'set-cookie') headers[name] = [...(headers[name] ?? []), value]
      else headers[name] = Object.hasOwn(headers, name) ? `${headers[name]}, ${value}` : value
    }
    return headers
  }
}

/** `from` has been read out of `text`. Headers are copied, here and below: whoever gets them may change them. */
function cut(from: ResponseHead, text: string, lengthAt: number): Known {
  const head = { ...from, headers: { ...from.headers } }
  if (lengthAt === 0) return { head, before: text, after: null }
  return { head, before: text.slice(0, lengthAt), after: text.slice(text.indexOf('\r\n', lengthAt)) }
}

/** Null: it is another head. */
function readAgain({ head, before, after }: Known, text: string): ResponseHead | null {
  const { status, headers, length, keeps, hintMs } = head
  if (after === null) return text === before ? { status, headers: { ...headers }, length, keeps, hintMs } : null
  const end = text.length - after.length
  if (text.slice(0, before.length) !== before || text.slice(end) !== after) return null
  const told = trimmed(text, before.length, end)
  if (!LENGTH.test(told)) return null
  return { status, headers: { ...headers, 'content-length': told }, length: Number(told), keeps, hintMs }
}

/** Without the spaces and tabs around it; `String.trim` would take away more than RFC 9110, section 5.5, allows. */
function trimmed(text: string, from: number, to: number): string {
  let start = from
  let end = to
  while (start < end && isBlank(text.charCodeAt(start))) start++
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--
  return text.slice(start, end)
}

function isBlank(code: number): boolean {
  return code === SPACE || code === TAB
}

/** RFC 9112, section 6.3, without its leniencies: two lengths, or one said in two ways, are an attack or a mistake. */
function lengthOf(headers: IncomingHttpHeaders, isOld: boolean): ResponseHead['length'] {
  const coding = headers['transfer-encoding']
  const length = headers['content-length']
  if (coding !== undefined) {
    if (length !== undefined) throw new BadResponse('it has both a length and a transfer coding')
    if (isOld) throw new BadResponse('HTTP/1.0 has no transfer codings')
    if (coding.toLowerCase() !== 'chunked') throw new BadResponse('its transfer coding is not exactly "chunked"')
    return 'chunked'
  }
  if (length === undefined) return 'open'
  if (!LENGTH.test(length)) throw new BadResponse('its Content-Length is not one number')
  return Number(length)
}

function hintOf(text: string): number | null {
  const seconds = HINT.exec(text)?.[1]
  return seconds === undefined ? null : Number(seconds) * 1000
}

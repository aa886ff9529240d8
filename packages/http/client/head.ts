import type { IncomingHttpHeaders } from 'node:http'

/** A response that is no HTTP/1.x message, or one that readers could understand differently. */
export class MalformedResponseError extends Error {
  constructor(why: string) {
    super(`The response cannot be read: ${why}.`)
    this.name = 'MalformedResponseError'
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
const [DIGIT_0, DIGIT_9] = [48, 57]
/** Digits of a length that is read without a text of it: every such number is exact. */
const MAX_LENGTH_DIGITS = 15

/** Longest head that is remembered, in characters: each connection holds one. */
const MAX_KNOWN_LENGTH = 2048

/** A head with its empty line, cut at its length. */
interface Known {
  readonly head: ResponseHead
  /** Up to the colon of `Content-Length`, or all of it. */
  readonly before: Uint8Array
  /** From the CR LF of that line on; null: it says no length. */
  readonly after: Uint8Array | null
}

/**
 * Reads the heads of one connection. Those of one server in one second mostly differ in nothing but the length that they say: what has
 * just been read is known again, and only its length is read.
 */
export class HeadReader {
  #known: Known | null = null
  /** Where the head ends that was known again, its empty line included. */
  end = 0
  /** Where the value of `Content-Length` begins in the head that is being read; 0: nowhere. */
  #lengthAt = 0

  /** The head that begins at `from`, where it is the last one but for its length; null: it is another, or `bytes` end before it does. */
  again(bytes: Uint8Array, from: number): ResponseHead | null {
    if (this.#known === null) return null
    const { head, before, after } = this.#known
    if (!holds(bytes, from, before)) return null
    let at = from + before.length
    let { length } = head
    const headers = { ...head.headers }
    if (after !== null) {
      while (isBlank(bytes[at])) at++
      const digits = countDigits(bytes, at)
      // A zero in front is part of what the header says, so it is read the long way.
      if (digits === 0 || (digits > 1 && bytes[at] === DIGIT_0)) return null
      length = numberOf(bytes, at, digits)
      at += digits
      if (!holds(bytes, at, after)) return null
      at += after.length
      headers['content-length'] = String(length)
    }
    this.end = at
    return { status: head.status, headers, length, keeps: head.keeps, hintMs: head.hintMs }
  }

  /** Takes status line and headers, each line with its CR LF; throws a `MalformedResponseError`. */
  read(text: string): ResponseHead {
    const head = this.#read(text)
    // A list could be changed by whoever gets it.
    const isKept = text.length <= MAX_KNOWN_LENGTH && head.headers['set-cookie'] === undefined
    this.#known = isKept ? cut(head, text, this.#lengthAt) : null
    return head
  }

  #read(text: string): ResponseHead {
    const match = STATUS_LINE.exec(text)
    if (match === null) throw new MalformedResponseError('its status line is malformed')
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
    if (!LINES.test(text.slice(from))) throw new MalformedResponseError('a line of its head is malformed')
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
  const bytes = Buffer.from(`${text}\r\n`, 'latin1')
  if (lengthAt === 0) return { head, before: bytes, after: null }
  return { head, before: bytes.subarray(0, lengthAt), after: bytes.subarray(text.indexOf('\r\n', lengthAt)) }
}

/** Byte by byte: a head is short, and a native comparison takes as long to be called. */
function holds(bytes: Uint8Array, at: number, part: Uint8Array): boolean {
  if (bytes.length - at < part.length) return false
  for (let index = 0; index < part.length; index++) if (bytes[at + index] !== part[index]) return false
  return true
}

function countDigits(bytes: Uint8Array, at: number): number {
  let count = 0
  while (count < MAX_LENGTH_DIGITS && isDigit(bytes[at + count])) count++
  return count
}

function numberOf(bytes: Uint8Array, at: number, digits: number): number {
  let value = 0
  for (let index = at; index < at + digits; index++) value = value * 10 + (bytes[index] ?? 0) - DIGIT_0
  return value
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= DIGIT_0 && byte <= DIGIT_9
}

/** Without the spaces and tabs around it; `String.trim` would take away more than RFC 9110, section 5.5, allows. */
function trimmed(text: string, from: number, to: number): string {
  let start = from
  let end = to
  while (start < end && isBlank(text.charCodeAt(start))) start++
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--
  return text.slice(start, end)
}

function isBlank(code: number | undefined): boolean {
  return code === SPACE || code === TAB
}

/** RFC 9112, section 6.3, without its leniencies: two lengths, or one said in two ways, are an attack or a mistake. */
function lengthOf(headers: IncomingHttpHeaders, isOld: boolean): ResponseHead['length'] {
  const coding = headers['transfer-encoding']
  const length = headers['content-length']
  if (coding !== undefined) {
    if (length !== undefined) throw new MalformedResponseError('it has both a length and a transfer coding')
    if (isOld) throw new MalformedResponseError('HTTP/1.0 has no transfer codings')
    if (coding.toLowerCase() !== 'chunked')
      throw new MalformedResponseError('its transfer coding is not exactly "chunked"')
    return 'chunked'
  }
  if (length === undefined) return 'open'
  if (!LENGTH.test(length)) throw new MalformedResponseError('its Content-Length is not one number')
  return Number(length)
}

function hintOf(text: string): number | null {
  const seconds = HINT.exec(text)?.[1]
  return seconds === undefined ? null : Number(seconds) * 1000
}

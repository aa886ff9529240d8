import type { IncomingHttpHeaders } from 'node:http'

/** A response that is not an HTTP/1.x message, or is ambiguous. */
export class MalformedResponseError extends Error {
  constructor(why: string) {
    super(`The response cannot be read: ${why}.`)
    this.name = 'MalformedResponseError'
  }
}

export interface ResponseHead {
  readonly status: number
  /** By lower-case name. Repeated headers are joined by `, `; `set-cookie` is a list. */
  readonly headers: IncomingHttpHeaders
  /** Body length in bytes; `open`: until the connection ends. Not meaningful where method or status forbid a body. */
  readonly length: number | 'chunked' | 'open'
  /** Whether the connection can be reused. */
  readonly keeps: boolean
  /** `Keep-Alive: timeout` in milliseconds; null when absent. */
  readonly hintMs: number | null
}

/** RFC 9112, section 4. The space before an empty reason is optional, because servers often omit it. */
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?\r\n/
/** Refuses folded lines (obs-fold), which begin with a space. */
const LINES = /^(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*\r\n)*$/
const LENGTH = /^\d{1,15}$/
const CLOSE = /(?:^|,)[\t ]*close[\t ]*(?:,|$)/i
const HINT = /(?:^|[,\t ])timeout=(\d{1,6})(?:$|[,\t ])/i

const SPACE = 32
const TAB = 9
const [DIGIT_0, DIGIT_9] = [48, 57]
/** Maximum digits of a length parsed without a string: every such number is exact. */
const MAX_LENGTH_DIGITS = 15

/** Maximum length of a cached head in characters: each connection keeps one. */
const MAX_KNOWN_LENGTH = 2048

/** A head with its empty line, split at the value of its length. */
interface Known {
  readonly head: ResponseHead
  /** Up to the colon of `Content-Length`, or the whole head. */
  readonly before: Uint8Array
  /** From the CR LF of that line on; null without a length. */
  readonly after: Uint8Array | null
}

/**
 * Parses the heads of one connection. Consecutive heads of a server mostly differ only in their length: a head equal to the cached one is not parsed
 * again except for its length.
 */
export class HeadReader {
  #known: Known | null = null
  /** Offset of the end of the cached head that matched, including its empty line. */
  end = 0
  /** Offset of the `Content-Length` value in the head being parsed; 0 when it has none. */
  #lengthAt = 0

  /** Returns the head at `from` if it equals the cached one except for the length; null if it differs or `bytes` is incomplete. */
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
      // A leading zero is part of the header value, so the head is parsed in full.
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

  /** Parses status line and headers, each line with its CR LF. Throws MalformedResponseError. */
  read(text: string): ResponseHead {
    const head = this.#read(text)
    // The caller could modify the list.
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

/** Splits `text`, from which `from` was parsed. Headers are copied, here and below: callers may modify theirs. */
function cut(from: ResponseHead, text: string, lengthAt: number): Known {
  const head = { ...from, headers: { ...from.headers } }
  const bytes = Buffer.from(`${text}\r\n`, 'latin1')
  if (lengthAt === 0) return { head, before: bytes, after: null }
  return { head, before: bytes.subarray(0, lengthAt), after: bytes.subarray(text.indexOf('\r\n', lengthAt)) }
}

/** Compares byte by byte: a head is short, and the call of a native comparison costs as much. */
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

/** Trims spaces and tabs only; `String.trim` removes more than RFC 9110, section 5.5, allows. */
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

/** RFC 9112, section 6.3, without its leniencies: two lengths, or both length and coding, are an attack or a mistake. */
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

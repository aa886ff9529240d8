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
const NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
const LENGTH = /^\d{1,15}$/
const CLOSE = /(?:^|,)[\t ]*close[\t ]*(?:,|$)/i
const HINT = /(?:^|[,\t ])timeout=(\d{1,6})(?:$|[,\t ])/i

const SPACE = 32
const TAB = 9

/** Reads status line and headers, each line with its CR LF; throws a `BadResponse`. */
export function readHead(text: string): ResponseHead {
  const match = STATUS_LINE.exec(text)
  if (match === null) throw new BadResponse('its status line is malformed')
  const headers = readHeaders(text, match[0].length)
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

function readHeaders(text: string, from: number): IncomingHttpHeaders {
  const headers: IncomingHttpHeaders = {}
  for (let at = from; at < text.length; ) {
    const end = text.indexOf('\r\n', at)
    const colon = text.indexOf(':', at)
    // A folded line (obs-fold) begins with a space, which no name has.
    const name = colon === -1 ? '' : text.slice(at, colon).toLowerCase()
    const value = trimmed(text, colon + 1, end)
    if (!NAME.test(name) || !VALUE.test(value)) throw new BadResponse('a line of its head is malformed')
    at = end + 2
    if (name === 'set-cookie') headers[name] = [...(headers[name] ?? []), value]
    else headers[name] = Object.hasOwn(headers, name) ? `${headers[name]}, ${value}` : value
  }
  return headers
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

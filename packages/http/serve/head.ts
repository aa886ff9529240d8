import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { faults, type HttpFault } from './errors.ts'

/** Headers that identify the caller or determine the meaning of a request: bytes outside visible ASCII are refused in them. */
const GUARDED = [
  'host',
  'authorization',
  'proxy-authorization',
  'dpop',
  'origin',
  'content-type',
  'content-encoding',
  'x-forwarded-for',
  'mcp-session-id',
  'mcp-protocol-version',
  'mcp-method',
  'mcp-name',
] as const

/** Headers that must not be repeated: two readers could pick different ones. */
const SINGLE: readonly string[] = ['host', 'authorization', 'proxy-authorization', 'dpop', 'content-type', 'origin']

/** Bit n is set when a name in `SINGLE` has n characters (modulo 32): rules out most other names by their length. */
const SINGLE_LENGTHS = SINGLE.reduce((bits, { length }) => bits | (1 << length), 0)

const UNSAFE = /[^\t\x20-\x7e]/

/** Authority of a CONNECT: host and port (RFC 9112, section 3.2.3). Checks the syntax only. */
const AUTHORITY = /^(?:[^\s:/?#@[\]\\]+|\[[0-9A-Fa-f:.]+\]):\d{1,5}$/

/**
 * Checks for what Node's parser accepts although two parsers could read it differently (RFC 9112, sections 3.2, 6.1 and 6.3). Returns null when the
 * head is safe. `maxHeaders` is the number of header fields allowed.
 */
export function headFault(request: IncomingMessage, maxHeaders: number): HttpFault | null {
  const { headers, rawHeaders, url = '' } = request
  // Must come first: Node omits headers beyond the limit from `headers`, so no other check would see them.
  if (rawHeaders.length > maxHeaders * 2) return faults.headTooLarge
  const coding = headers['transfer-encoding']
  if (coding !== undefined) {
    if (coding !== 'chunked') return refused('The only supported transfer coding is "chunked".')
    if (headers['content-length'] !== undefined)
      return refused('Content-Length and Transfer-Encoding exclude each other.')
  }
  if (request.method === 'CONNECT') {
    const fault = tunnelFault(url, headers)
    if (fault !== null) return fault
  } else if (!url.startsWith('/') && !(url === '*' && request.method === 'OPTIONS')) {
    return refused('The request target must be a path.')
  }
  const { httpVersion } = request
  // The parser also accepts 0.9 and 2.0 and frames them differently.
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return refused('The only supported version is HTTP/1.1.')
  if (headers.host === undefined && httpVersion !== '1.0') return refused('The header host is missing.')
  const { expect } = headers
  if (expect !== undefined && expect.toLowerCase() !== '100-continue')
    return refused('The only supported expectation is "100-continue".')
  const twice = repeated(rawHeaders)
  if (twice !== null) return refused(`The header ${twice} must come once.`)
  const unsafe = unsafeHeader(request)
  return unsafe === null ? null : refused(`The header ${unsafe} holds bytes outside ASCII.`)
}

/** Tunnel bytes begin right behind the head: one parser would read a body as tunnel data, another as a request. */
function tunnelFault(target: string, headers: IncomingMessage['headers']): HttpFault | null {
  if (!AUTHORITY.test(target)) return refused('The target of CONNECT must be <host>:<port>.')
  const { 'transfer-encoding': coding, 'content-length': length } = headers
  return coding === undefined && (length ?? '0') === '0' ? null : refused('CONNECT has no body.')
}

/** Returns the first header of `GUARDED` with an unsafe byte, or null. One scan of the whole head suffices for nearly every request. */
function unsafeHeader({ headers, rawHeaders }: IncomingMessage): string | null {
  if (isAscii(rawHeaders)) return null
  for (const name of GUARDED) {
    const value = headers[name]
    if (typeof value === 'string' && UNSAFE.test(value)) return name
  }
  return null
}

function refused(message: string): HttpFault {
  return { status: 400, code: 'invalid_request', message }
}

/** Returns the first header of `SINGLE` that is repeated, or null; `raw` alternates names and values. */
function repeated(raw: readonly string[]): string | null {
  let seen = 0
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] ?? ''
    if (((SINGLE_LENGTHS >> name.length) & 1) === 0) continue
    const at = SINGLE.indexOf(name.toLowerCase())
    if (at < 0) continue
    const bit = 1 << at
    if ((seen & bit) !== 0) return SINGLE[at] ?? ''
    seen |= bit
  }
  return null
}

/** Of the characters that the parser accepts, only those outside ASCII need more than one byte in UTF-8. Names are tokens (RFC 9110, section 5.1). */
function isAscii(raw: readonly string[]): boolean {
  for (let i = 1; i < raw.length; i += 2) {
    const value = raw[i] ?? ''
    if (Buffer.byteLength(value) !== value.length) return false
  }
  return true
}

/**
 * Prevents DNS rebinding: on a loopback listener a foreign host name must be refused. Returns whether `host` (a Host header) names the loopback
 * interface or one of `names` (host names without port, lower case).
 */
export function isLoopbackHost(host: string | undefined, names: ReadonlySet<string>): boolean {
  if (host === undefined) return false
  const name = hostName(host)
  return name === 'localhost' || isLoopbackAddress(name) || names.has(name)
}

/** Returns the host without port and brackets, in lower case. */
function hostName(host: string): string {
  const closing = host.startsWith('[') ? host.indexOf(']') : -1
  if (closing > 0) return host.slice(1, closing).toLowerCase()
  const colon = host.indexOf(':')
  return (colon === -1 ? host : host.slice(0, colon)).toLowerCase()
}

/** 127.0.0.0/8 and ::1. */
export function isLoopbackAddress(address: string): boolean {
  return address === '::1' || (isIP(address) === 4 && address.startsWith('127.'))
}

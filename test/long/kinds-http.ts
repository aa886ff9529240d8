import type { Dice } from './dice.ts'
import { CANARY, callOf, headLines, type Kind, refused, wellFormed, withLines, written } from './request.ts'

const body = callOf(CANARY)
const length = `Content-Length: ${body.length}`

/** Transfer codings other than exactly `chunked` (RFC 9112, section 6.1). */
const CODINGS = [
  'gzip, chunked',
  'chunked, gzip',
  'chunked, chunked',
  'chunked, identity',
  'identity',
  'gzip',
  'deflate',
  ',chunked',
  'chunked,',
  'chunked;q=1',
  'x chunked',
  'xchunked',
  'chunkedx',
  '"chunked"',
  'CHUNKED',
  'chunked\x0b',
  '\x0bchunked',
  '',
]

/** No decimal number of bytes (RFC 9112, section 6.3). */
const LENGTHS = [
  '-1',
  '+5',
  '0x5',
  '5,5',
  '5, 6',
  '5 5',
  '1e1',
  'five',
  '5.0',
  '99999999999999999999',
  '\xb2',
  '',
  '5;',
]

const METHODS = ['GE', 'get', 'POSTS', 'G\tT', '', 'P\0ST', 'HELLO', 'B\xe4H', '{}', 'HTTP/1.1', 'PRI']

const TARGETS = [
  'http://localhost/mcp/notes',
  'https://localhost:443/mcp/notes',
  'file:///etc/passwd',
  'localhost:80',
  'mcp/notes',
  '*',
  '?a=b',
  '#',
  '\\mcp\\notes',
  '%2fmcp%2fnotes',
]

const VERSIONS = [
  'HTTP/1.2',
  'HTTP/2.0',
  'HTTP/0.9',
  'HTTP/1',
  'HTTP/11.1',
  'http/1.1',
  'HTTP/1.1 x',
  'HTTPS/1.1',
  'HTTP 1.1',
]

const LINES = [
  'X-A',
  ': a',
  'X A: b',
  'X-A : b',
  ' X-A: b',
  '\tX-A: b',
  'X\0A: b',
  'X-A: b\0c',
  'X-A: b\x01c',
  'X-A: b\x7fc',
  'X(A): b',
  'X\xe4: b',
  '"X": b',
  'X-A: b\rX-B: c',
  'Authorization\x0b: Bearer x',
  'X-A: b\n c',
]

const SINGLES = ['Host: localhost', 'Authorization: Bearer x', 'Content-Type: application/json', 'DPoP: x', 'Origin: x']

const GUARDED = [
  'Mcp-Session-Id',
  'Mcp-Protocol-Version',
  'Mcp-Method',
  'Mcp-Name',
  'Origin',
  'DPoP',
  'X-Forwarded-For',
]

const HOSTS = [
  'evil.example',
  'localhost.evil.example',
  '127.0.0.1.evil.example',
  '[::2]',
  '10.0.0.1:80',
  'localhost@x',
]

/** Broken framing of a chunked body (RFC 9112, section 7.1). */
const CHUNKS = [
  'zz\r\n{}\r\n0\r\n\r\n',
  '-2\r\n{}\r\n0\r\n\r\n',
  '0x2\r\n{}\r\n0\r\n\r\n',
  ' 2\r\n{}\r\n0\r\n\r\n',
  '2 \r\n{}\r\n0\r\n\r\n',
  '2\n{}\n0\n\n',
  '2\r\n{}0\r\n\r\n',
  '2\r\n{}x\r\n0\r\n\r\n',
  '2\r{}\r\n0\r\n\r\n',
  '\r\n{}\r\n0\r\n\r\n',
  '2;\0=1\r\n{}\r\n0\r\n\r\n',
  '2;a="\r\n{}\r\n0\r\n\r\n',
  'fffffffffffffffff\r\n{}\r\n0\r\n\r\n',
  '2\r\n{}\r\n0\r\nX Y: z\r\n\r\n',
]

/** Requests that are ambiguous or malformed at the HTTP level: each is refused, and nothing after it is read. */
export const httpKinds: Readonly<Record<string, Kind>> = {
  coding: (dice, token) => {
    const lines = withLines(dice, token, [`${dice.anyCase('transfer-encoding')}: ${dice.one(CODINGS)}`])
    return refused(written({ lines, body: '0\r\n\r\n' }), token)
  },
  codingAndLength: (dice, token) => {
    const coding = `${dice.anyCase('transfer-encoding')}: ${dice.one(['chunked', ...CODINGS])}`
    return refused(written({ lines: withLines(dice, token, [length, coding]), body: '0\r\n\r\n' }), token)
  },
  length: (dice, token) =>
    refused(
      written({ lines: withLines(dice, token, [`${dice.anyCase('content-length')}: ${dice.one(LENGTHS)}`]), body }),
      token,
    ),
  lengths: (dice, token) => {
    const other = `Content-Length: ${dice.one([0, body.length - 1, body.length, body.length + 1, 10])}`
    return refused(written({ lines: withLines(dice, token, [length, other]), body }), token)
  },
  folding: (dice, token) => {
    const name = dice.one(['X-A', 'Authorization', 'Content-Length', 'Transfer-Encoding', 'Host'])
    const folded = `${name}: ${dice.one(['b', ''])}\r\n${dice.one([' ', '\t', '  '])}${dice.one(['c', '5', 'chunked'])}`
    return refused(written({ lines: withLines(dice, token, [folded]), body }), token)
  },
  lineEnds: (dice, token) => {
    const text = wellFormed(token, CANARY).toString('latin1')
    const ends = text.split('\r\n')
    const at = dice.below(ends.length - 2) + 1
    const odd = dice.one(['\n', '\r', '\n\r', '\r\r\n', '\r\0\n'])
    const broken = `${ends.slice(0, at).join('\r\n')}${odd}${ends.slice(at).join('\r\n')}`
    return refused(Buffer.from(broken, 'latin1'), token)
  },
  chunks: (dice, token) => {
    const lines = [...headLines(token), 'Transfer-Encoding: chunked']
    const good = dice.chance(30) ? `${body.length.toString(16)}\r\n${body}\r\n` : ''
    return refused(written({ lines, body: Buffer.from(good + dice.one(CHUNKS), 'latin1') }), token)
  },
  requestLine: (dice, token) => {
    const first = dice.one([
      () => `${dice.one(METHODS)} /mcp/notes HTTP/1.1`,
      () => `POST ${dice.one(TARGETS)} HTTP/1.1`,
      () => `POST /mcp/notes ${dice.one(VERSIONS)}`,
      () =>
        dice.one([
          'POST',
          'POST /mcp/notes',
          '\tPOST / HTTP/1.1',
          'POST\t/ HTTP/1.1',
          '/ HTTP/1.1',
          'POST /a b HTTP/1.1',
        ]),
    ])()
    return refused(written({ first, lines: [...headLines(token), length], body }), token)
  },
  headerLine: (dice, token) =>
    refused(written({ lines: withLines(dice, token, [length, dice.one(LINES)]), body }), token),
  twice: (dice, token) => {
    const line = dice.one(SINGLES)
    const again = line.replace(/^[^:]+/, (name) => dice.anyCase(name.toLowerCase()))
    return refused(written({ lines: withLines(dice, token, [length, line, again]), body }), token)
  },
  bytesInNames: (dice, token) => {
    const line = `${dice.one(GUARDED)}: a${String.fromCharCode(0x80 + dice.below(0x80))}b`
    return refused(written({ lines: withLines(dice, token, [length, line]), body }), token)
  },
  noHost: (dice, token) => {
    const lines = withLines(dice, token, [length]).filter((line) => !line.startsWith('Host'))
    return refused(written({ lines, body }), token)
  },
  foreignHost: (dice, token) => {
    const lines = headLines(token).map((line) => (line.startsWith('Host') ? `Host: ${dice.one(HOSTS)}` : line))
    return refused(written({ lines: [...lines, length], body }), token, 403)
  },
  manyHeaders: (dice, token) => {
    const many = Array.from({ length: 200 + dice.below(400) }, (_, i) => `X-${i}: a`)
    return refused(written({ lines: withLines(dice, token, [length, ...many]), body }), token, 431)
  },
  largeHead: (dice, token) => {
    const large = `X-A: ${'a'.repeat(16_384 + dice.below(20_000))}`
    return refused(written({ lines: withLines(dice, token, [length, large]), body }), token, 431)
  },
  expectation: (dice, token) => {
    const line = `Expect: ${dice.one(['200-ok', '100-continue, x', '100', 'a=b', '\xff'])}`
    return refused(written({ lines: withLines(dice, token, [length, line]), body }), token)
  },
  tunnel: (dice, token) => {
    const authority = dice.one(['localhost:80', 'example.com:443', '[::1]:80', '169.254.169.254:80', 'x:99999'])
    return refused(written({ first: `CONNECT ${authority} HTTP/1.1`, lines: headLines(token) }), token, 501)
  },
  cutShort: cutShort,
}

/** The caller is gone in the middle of the head or of the body. */
function cutShort(dice: Dice, token: string): ReturnType<Kind> {
  const whole = wellFormed(token, CANARY)
  return { bytes: whole.subarray(0, dice.below(whole.length)), statuses: [0, 400], answers: 1 }
}

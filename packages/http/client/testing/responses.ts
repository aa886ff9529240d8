import type { IncomingHttpHeaders } from 'node:http'
import fc from 'fast-check'
import { ResponseParser } from '../parser.ts'

/** Result of parsing some bytes. */
export interface ParseResult {
  status: number
  headers: IncomingHttpHeaders
  /** As latin-1 text. */
  body: string
  done: boolean
  keeps: boolean
  hintMs: number | null
  /** Number of unconsumed bytes. */
  unused: number
}

/** Parses parts one after the other; returns the refusal as a string. */
export function read(parts: readonly Buffer[], { method = 'GET', ended = false } = {}): ParseResult | string {
  const result: ParseResult = { status: 0, headers: {}, body: '', done: false, keeps: false, hintMs: null, unused: 0 }
  const parser = new ResponseParser({
    head(status, headers) {
      result.status = status
      result.headers = headers
    },
    data(bytes) {
      result.body += bytes.toString('latin1')
    },
  })
  parser.begin(method)
  try {
    for (const part of parts) result.unused += part.length - parser.push(Buffer.from(part))
    if (ended) parser.close()
  } catch (error) {
    return String(error)
  }
  return { ...result, done: parser.done, keeps: parser.keeps, hintMs: parser.hintMs }
}

const token = fc.stringMatching(/^[a-z-]{1,12}$/).filter((name) => !/^(content-length|transfer-encoding)$/.test(name))
const value = fc.stringMatching(/^[!-~](?:[ -~\t]{0,20}[!-~])?$/)
const headers = fc.array(fc.tuple(token, value), { maxLength: 6 })
const content = fc.string({ unit: fc.constantFrom('a', '\r', '\n', '0', ';', '\0', 'ÿ'), maxLength: 60 })
const chunks = fc.array(
  content.filter((part) => part !== ''),
  { maxLength: 6 },
)
const framing = fc.oneof(
  content.map((body) => ({ line: `Content-Length: ${body.length}\r\n`, sent: body, body })),
  content.map((body) => ({ line: '', sent: body, body })),
  fc
    .tuple(chunks, fc.constantFrom('', ';a', ';a="b c"'), fc.constantFrom('', 'X-Sum: 1\r\n'))
    .map(([parts, extension, trailer]) => ({
      line: 'Transfer-Encoding: chunked\r\n',
      sent: `${parts.map((part) => `${part.length.toString(16)}${extension}\r\n${part}\r\n`).join('')}0\r\n${trailer}\r\n`,
      body: parts.join(''),
    })),
)

/** Responses that every parser accepts, with their body. */
export const responseBytes = fc
  .record({
    interim: fc.nat(2),
    status: fc.integer({ min: 200, max: 599 }).filter((status) => status !== 204 && status !== 304),
    headers,
    framing,
  })
  .map(({ interim, status, headers: lines, framing: { line, sent, body } }) => {
    const early = 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(interim)
    const head = `HTTP/1.1 ${status} OK\r\n${lines.map(([name, text]) => `${name}: ${text}\r\n`).join('')}${line}\r\n`
    return { bytes: Buffer.from(early + head + sent, 'latin1'), body }
  })

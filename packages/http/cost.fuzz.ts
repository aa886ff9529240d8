import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { systemClock } from '@plat/core'
import { costTarget, type Families, type Row } from '../../test/fuzz/cost.ts'
import { json, text } from '../../test/fuzz/families.ts'
import { ResponseParser } from './client/parser.ts'
import { createAddressCheck, isAddressRange } from './dial/addresses.ts'
import { Body } from './endpoints/body.ts'
import { parseAddress } from './serve/address.ts'
import { readBody } from './serve/body.ts'
import { headFault } from './serve/head.ts'

const KIB = 1024
const MIB = 1024 * KIB
/** Size of one socket read. */
const SOCKET_CHUNK = 64 * KIB
/** Reads of one byte in one turn of the event loop: more than a socket has. */
const READS_PER_TURN = 4 * KIB
const count = (n: number, size: number, each: (at: number) => string) =>
  Array.from({ length: n / size }, (_, at) => each(at))

const heads: Families = {
  ...text,
  headers: (n) => count(n, 9, (at) => `a${at}: b`).join('\r\n'),
  'the same header': (n) => 'a: b\r\n'.repeat(n / 6),
  cookies: (n) => 'set-cookie: a\r\n'.repeat(n / 15),
  'one header': (n) => `a: ${'b'.repeat(n)}`,
  commas: (n) => `connection: ${','.repeat(n)}`,
  blanks: (n) => `keep-alive: ${' '.repeat(n)}timeout=`,
}

const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
const responses: Families = {
  ...Object.fromEntries(
    Object.entries(heads).map(([name, make]) => [name, (n: number) => `HTTP/1.1 200 OK\r\n${make(n)}\r\n\r\n`]),
  ),
  'head without end': (n) => `HTTP/1.1 200 OK\r\na: ${'b'.repeat(n)}`,
  'interim heads': (n) => 'HTTP/1.1 103 A\r\n\r\n'.repeat(n / 18),
  'small chunks': (n) => chunked + '1\r\na\r\n'.repeat(n / 6),
  'chunks with extensions': (n) => chunked + '1;a=b\r\na\r\n'.repeat(n / 10),
  'a long extension': (n) => `${chunked}1;${'a'.repeat(n)}`,
  trailers: (n) => `${chunked}0\r\n${'a: b\r\n'.repeat(n / 6)}`,
}

/** Reads a response in chunks. Chunks come from separate reads of a socket, so that the event loop turns between many of them. */
async function readResponse(input: string, size: number): Promise<void> {
  const parser = new ResponseParser({ head() {}, data() {} })
  parser.begin('GET')
  const bytes = Buffer.from(input, 'latin1')
  for (let at = 0; at < bytes.length; at += size) {
    parser.push(Buffer.from(bytes.subarray(at, at + size)))
    if (at % READS_PER_TURN === READS_PER_TURN - 1) await new Promise(setImmediate)
  }
}

function requestOf(input: string): IncomingMessage {
  const request = new IncomingMessage(new Socket())
  const lines = input.split('\r\n').map((line) => line.split(': ', 2))
  Object.assign(request, { method: 'POST', url: `/${input}`, httpVersion: '1.1' })
  request.rawHeaders = lines.flatMap(([name = '', value = '']) => [name, value])
  request.headers = Object.fromEntries([...lines, ['host', input]].map(([name = '', value = '']) => [name, value]))
  return request
}

async function readPieces(input: string, size: number): Promise<void> {
  const bytes = Buffer.from(input)
  const pieces = Readable.from(
    (function* () {
      for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
    })(),
    { objectMode: false },
  )
  await readBody(pieces, { maxBytes: 4 * MIB, timeoutMs: 60_000, clock: systemClock, headers: {} })
}

const rows: readonly Row[] = [
  {
    parser: 'HTTP requests',
    limit: 16 * KIB,
    families: heads,
    prepare: (input) => {
      const request = requestOf(input)
      return () => headFault(request, 200)
    },
  },
  { parser: 'HTTP request bodies', limit: 4 * MIB, families: text, run: (input) => readPieces(input, SOCKET_CHUNK) },
  {
    parser: 'HTTP request bodies',
    part: 'in small pieces',
    limit: 256 * KIB,
    families: text,
    run: (input) => readPieces(input, 16),
  },
  {
    parser: 'HTTP responses',
    limit: SOCKET_CHUNK,
    families: responses,
    run: (input) => readResponse(input, SOCKET_CHUNK),
  },
  {
    parser: 'HTTP responses',
    part: 'byte by byte',
    limit: 32 * KIB,
    families: responses,
    run: (input) => readResponse(input, 1),
  },
  {
    parser: 'addresses',
    limit: 16 * KIB,
    families: { ...text, colons: (n) => ':'.repeat(n), zeros: (n) => '0:'.repeat(n / 2) },
    run: (input) => [createAddressCheck([])(input, 'public'), isAddressRange(`${input}/8`), parseAddress(input)],
  },
  {
    parser: 'JSON bodies of services',
    limit: 64 * KIB,
    families: json,
    run: (input) => Body.parse(Buffer.from(input), new Set(['a'])),
  },
]

export const target = costTarget('cost/http', rows)

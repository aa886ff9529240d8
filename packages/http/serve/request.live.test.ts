import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { test } from 'node:test'
import { listening } from '@plat/testkit/local'
import type { Exchange } from './listen.ts'
import { raw, serving } from './testing/serving.ts'

/** Request heads sent over one connection, without the lines common to all. */
const heads: readonly (readonly string[])[] = [
  ['X-A: 1', 'Accept: text/plain', 'Authorization: Bearer one'],
  ['X-A: 2', 'Accept: text/html', 'Authorization: Bearer two'],
  ['X-A: ', 'Accept: */*', 'Authorization: Bearer three'],
  // The same names in another order, in another case, one less, one more.
  ['Accept: text/plain', 'X-A: 3', 'Authorization: Bearer one'],
  ['accept: text/plain', 'x-a: 4', 'authorization: Bearer one'],
  ['accept: text/plain', 'x-a: 5'],
  ['accept: text/plain', 'x-a: 6', 'x-b: 6'],
  ['accept: text/plain', 'x-a: 6', 'x-c: 6'],
  // Repeated headers: joined, dropped or listed.
  ['x-a: 1', 'x-a: 2', 'cookie: a=1', 'cookie: b=2', 'user-agent: one', 'user-agent: one', 'set-cookie: a=1'],
  ['x-a: 1', 'x-a: 2', 'cookie: a=1', 'cookie: b=2', 'user-agent: one', 'user-agent: two', 'set-cookie: a=1'],
  ['set-cookie: a=1'],
  ['set-cookie: a=2'],
  ['user-agent: one', 'user-agent: one'],
  ['user-agent: two', 'user-agent: one'],
  // Names that JavaScript objects order or treat specially.
  ['x-a: 1', '10: ten', '9: nine'],
  ['x-a: 2', '10: zehn', '9: neun'],
  ['__proto__: 1', 'constructor: 2', 'toString: 3'],
  ['__proto__: 4', 'constructor: 5', 'toString: 6'],
  ['constructor: 5', 'toString: 6'],
  ['constructor: 7', 'toString: 8'],
  // Too many and too long to be cached.
  Array.from({ length: 40 }, (_, at) => `x-${at}: ${at}`),
  Array.from({ length: 40 }, (_, at) => `x-${at}: ${at + 1}`),
  [`x-${'a'.repeat(100)}: 1`],
  [`x-${'a'.repeat(100)}: 2`],
]

/** Responds with the headers as parsed, then modifies them. */
function tell({ headers }: IncomingMessage, response: ServerResponse): void {
  response.end(`${JSON.stringify(Object.entries(headers))}\n`)
  delete headers.authorization
  headers['x-added'] = 'here'
}

/** Parses `heads` over one connection; returns the headers of each. */
async function found(port: number): Promise<readonly string[]> {
  const last = heads.length - 1
  const requests = heads.map((lines, at) =>
    ['GET /raw/x HTTP/1.1', 'Host: localhost', ...lines, ...(at === last ? ['Connection: close'] : []), '', ''].join(
      '\r\n',
    ),
  )
  return (await raw(port, requests.join(''))).split(/\r?\n/).filter((line) => line.startsWith('['))
}

test('headers with cached names are parsed as Node parses them', async () => {
  const plain = createServer(tell)
  const port = await listening(plain)
  const expected = await found(port)
  plain.close()
  assert.equal(expected.length, heads.length)
  const route = { prefix: '/raw/', handle: ({ request, response }: Exchange) => tell(request, response) }
  await serving({ raw: [route] }, async ({ port }) => assert.deepEqual(await found(port), expected))
})

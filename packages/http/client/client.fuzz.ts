import assert from 'node:assert/strict'
import fc from 'fast-check'
import { fuzzTarget, near } from '../../../test/fuzz/target.ts'
import { read, responseBytes } from './testing/responses.ts'

const text = near([
  'HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc',
  'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nX: y\r\n\r\n',
  'HTTP/1.0 304 Not Modified\r\nConnection: keep-alive, close\r\nKeep-Alive: timeout=5\r\nSet-Cookie: a\r\n\r\n',
  'HTTP/1.1 200 OK\r\n folded\r\nContent-Length: 1, 1\r\n\n',
])
const bytes = fc.oneof(
  text.map((one) => Buffer.from(one, 'latin1')),
  responseBytes.map((one) => one.bytes),
)

export const target = fuzzTarget('http-client', {
  'any bytes are one response or refused, however they are cut': fc.property(
    bytes,
    fc.integer({ min: 1, max: 9 }),
    fc.constantFrom('GET', 'HEAD'),
    (given, size, method) => {
      const whole = read([given], { method, ended: true })
      const parts: Buffer[] = []
      for (let at = 0; at < given.length; at += size) parts.push(given.subarray(at, at + size))
      const cut = read(parts, { method, ended: true })
      if (typeof whole === 'string') assert.equal(typeof cut, 'string')
      else assert.deepEqual(cut, whole)
    },
  ),
})

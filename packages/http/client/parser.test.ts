import assert from 'node:assert/strict'
import type { IncomingHttpHeaders } from 'node:http'
import { test } from 'node:test'
import fc from 'fast-check'
import { HeadReader, MalformedResponseError } from './head.ts'
import { MAX_HEAD_BYTES, ResponseParser } from './parser.ts'
import { type ClientRequest, joined, RequestHeads } from './request.ts'
import { type ParseResult, read, responseBytes } from './testing/responses.ts'

const bytesOf = (text: string) => Buffer.from(text, 'latin1')
const parse = (text: string, how?: Parameters<typeof read>[1]) => read([bytesOf(text)], how)
const requestHead = (request: ClientRequest, host: string) => new RequestHeads(host).of(request)
const bodyOf = (parsed: ParseResult | string) => (typeof parsed === 'string' ? parsed : parsed.body)

test('a response is read by its length, in chunks, or until the connection ends', () => {
  const parsed = parse('HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX: \t a b\t \r\nContent-Length: 3\r\n\r\nabc')
  assert.deepEqual(parsed, {
    status: 200,
    headers: { 'content-type': 'text/plain', x: 'a b', 'content-length': '3' },
    body: 'abc',
    done: true,
    keeps: true,
    hintMs: null,
    unused: 0,
  })
  const chunked =
    'HTTP/1.1 200\r\nTransfer-Encoding: Chunked\r\n\r\n3 ;a="b"\r\nabc\r\n0A\r\n0123456789\r\n0\r\nX: y\r\n\r\n'
  assert.equal(bodyOf(parse(chunked)), 'abc0123456789')
  const open = parse('HTTP/1.1 200 OK\r\n\r\nto the end', { ended: true })
  assert.deepEqual([bodyOf(open), typeof open === 'object' && open.keeps], ['to the end', false])
})

test('method and status decide whether there is a body, regardless of the head', () => {
  const announced = 'Content-Length: 5\r\n\r\n'
  for (const [text, method] of [
    [`HTTP/1.1 200 OK\r\n${announced}`, 'HEAD'],
    [`HTTP/1.1 204 No Content\r\n${announced}`, 'GET'],
    [`HTTP/1.1 304 Not Modified\r\n${announced}`, 'GET'],
    ['HTTP/1.1 204 No Content\r\n\r\n', 'POST'],
  ] as const) {
    const parsed = parse(text, { method })
    assert.ok(typeof parsed === 'object' && parsed.done && parsed.keeps, text)
  }
})

test('interim heads are skipped up to a limit, and a protocol change is refused', () => {
  const interim = 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'
  const final = 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx'
  assert.equal(bodyOf(parse(`HTTP/1.1 100 Continue\r\n\r\n${interim}${final}`)), 'x')
  assert.match(String(parse(interim.repeat(17) + final)), /interim/)
  assert.match(String(parse('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n')), /protocol/)
})

test('an ambiguous response is refused', () => {
  const head = (lines: string) => `HTTP/1.1 200 OK\r\n${lines}\r\n\r\nabc`
  for (const text of [
    head('Content-Length: 3\r\nContent-Length: 4'),
    head('Content-Length: 3\r\nContent-Length: 3'),
    head('Content-Length: +3'),
    head('Content-Length: 3, 3'),
    head('Content-Length: 0x3'),
    head('Content-Length: '),
    head('Content-Length: 3\r\nTransfer-Encoding: chunked'),
    head('Transfer-Encoding: gzip, chunked'),
    head('Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked'),
    head('Transfer-Encoding: identity'),
    'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    head('X: a\r\n folded'),
    head('X : a'),
    head(': a'),
    head('no colon'),
    head('X: a\rb'),
    head('X: a\nContent-Length: 3'),
    head('X: a\0b'),
    'HTTP/1.1 200 OK\nContent-Length: 3\n\nabc',
    'HTTP/2.0 200 OK\r\n\r\n',
    'HTTP/1.1 20 OK\r\n\r\n',
    'HTTP/1.1  200 OK\r\n\r\n',
    'SSH-2.0-OpenSSH_9.9\r\n',
    '\r\nHTTP/1.1 200 OK\r\n\r\n',
  ])
    assert.equal(typeof parse(text), 'string', JSON.stringify(text))
})

test('malformed chunks are refused', () => {
  for (const body of [
    '3\r\nabcd\r\n0\r\n\r\n',
    '3\nabc\r\n',
    '-1\r\n',
    '\r\n',
    'fffffffffffff\r\n',
    '3 \r\nabc',
    '3\r\nabc\n0\r\n',
    '1\r\na\r\n\n',
    ...['/', ':', '@', 'G', '`', 'g', '\x10', '\xb1'].map((digit) => `${digit}\r\n${'a'.repeat(20)}`),
  ])
    assert.equal(
      typeof parse(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${body}`),
      'string',
      JSON.stringify(body),
    )
})

test('a truncated response is refused', () => {
  for (const text of [
    '',
    'HTTP/1.1 200 OK\r\n',
    'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n',
  ])
    assert.match(String(parse(text, { ended: true })), /ended before/, JSON.stringify(text))
})

test('head, line and trailers have limits', () => {
  const line = (bytes: number) => `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(bytes)}`
  assert.match(String(parse(`${line(MAX_HEAD_BYTES)}\r\n\r\n`)), /larger than/)
  assert.match(String(parse(line(MAX_HEAD_BYTES))), /larger than/)
  assert.ok(typeof parse(`${line(MAX_HEAD_BYTES - 100)}\r\nContent-Length: 0\r\n\r\n`) === 'object')
  const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
  assert.match(String(parse(`${chunked}1;${'x'.repeat(5000)}`)), /too long/)
  assert.match(String(parse(`${chunked}0\r\n${`a: ${'x'.repeat(1000)}\r\n`.repeat(40)}`)), /larger than/)
})

test('keep-alive headers of a server are honored', () => {
  const parsed = (lines: string, version = '1.1') => {
    const result = parse(`HTTP/${version} 200 OK\r\n${lines}Content-Length: 0\r\n\r\n`)
    assert.ok(typeof result === 'object')
    return [result.keeps, result.hintMs]
  }
  assert.deepEqual(parsed('Connection: keep-alive\r\nKeep-Alive: timeout=5, max=100\r\n'), [true, 5000])
  assert.deepEqual(parsed('Connection: Close\r\n'), [false, null])
  assert.deepEqual(parsed('Connection: x, close\r\n'), [false, null])
  assert.deepEqual(parsed('Connection: closed\r\n'), [true, null])
  assert.deepEqual(parsed('', '1.0'), [false, null])
})

test('bytes after a response are not consumed, and names of object members are ordinary headers', () => {
  const parsed = parse(
    'HTTP/1.1 200 OK\r\nConstructor: a\r\nSet-Cookie: b\r\nSet-Cookie: c\r\nContent-Length: 1\r\n\r\nxHTTP',
  )
  assert.ok(typeof parsed === 'object')
  assert.equal(parsed.unused, 4)
  assert.deepEqual({ ...parsed.headers }, { constructor: 'a', 'set-cookie': ['b', 'c'], 'content-length': '1' })
})

test('any response, split anywhere, is parsed alike', () => {
  fc.assert(
    fc.property(responseBytes, fc.array(fc.nat(400), { maxLength: 12 }), ({ bytes, body }, cuts) => {
      const whole = read([bytes], { ended: true })
      assert.equal(bodyOf(whole), body)
      const points = [0, ...cuts.filter((cut) => cut <= bytes.length).sort((a, b) => a - b), bytes.length]
      const parts = points.slice(1).map((end, i) => bytes.subarray(points[i], end))
      assert.deepEqual(read(parts, { ended: true }), whole)
      assert.deepEqual(
        read(
          Array.from(bytes, (_, i) => bytes.subarray(i, i + 1)),
          { ended: true },
        ),
        whole,
      )
    }),
  )
})

test('the chunks of one read are reported in one piece, also when a refused message follows', () => {
  const parsed: string[] = []
  const parser = new ResponseParser({ head: () => parsed.push('head'), data: (bytes) => parsed.push(bytes.toString()) })
  const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
  parser.begin('GET')
  parser.push(bytesOf(`${head}1\r\na\r\n14\r\n${'b'.repeat(20)}\r\n3\r\ncd`))
  parser.push(bytesOf('e\r\n2\r\n'))
  parser.push(bytesOf('fg'))
  assert.throws(() => parser.push(bytesOf('\r\n1\r\nh\r\n1\r\ni\r\n1\r\njj\r\n')), MalformedResponseError)
  assert.deepEqual(parsed, ['head', `a${'b'.repeat(20)}cd`, 'e', 'fg', 'hij'])
})

test('one parser reads one response after the other', () => {
  const seen: [number, IncomingHttpHeaders][] = []
  const parser = new ResponseParser({ head: (status, headers) => seen.push([status, headers]), data: () => {} })
  for (const status of [200, 404]) {
    parser.begin('GET')
    parser.push(bytesOf(`HTTP/1.1 ${status} x\r\nContent-Length: 0\r\n\r\n`))
    assert.ok(parser.done)
  }
  assert.deepEqual(
    seen.map(([status]) => status),
    [200, 404],
  )
})

const someLine = fc.constantFrom(
  'Date: today',
  'Date: tomorrow',
  'Connection: close',
  'Keep-Alive: timeout=5',
  'X-Content-Length: 7',
  'X: \tcontent-length: 7',
  'Set-Cookie: a',
  'Transfer-Encoding: chunked',
  'constructor: a',
  ' folded',
)
const someLength = fc.constantFrom('1', '23', '007', ' 4\t', '', '+5', '6, 6', '7\r\nX: y', '8\r', '9'.repeat(16))
const someHead = fc
  .record({
    status: fc.constantFrom('HTTP/1.1 200 OK', 'HTTP/1.1 404 x', 'HTTP/1.0 200 OK'),
    before: fc.array(someLine, { maxLength: 2 }),
    length: fc.option(someLength),
    after: fc.array(someLine, { maxLength: 2 }),
  })
  .map(({ status, before, length, after }) => {
    const lines = [status, ...before, ...(length === null ? [] : [`Content-Length:${length}`]), ...after]
    return lines.map((line) => `${line}\r\n`).join('')
  })

test('earlier heads on a connection do not affect the result for a head', () => {
  const parsed = (reader: HeadReader, text: string) => {
    try {
      const again = reader.again(bytesOf(`GET ${text}\r\n`), 'GET '.length)
      if (again !== null) assert.equal(reader.end, 'GET '.length + text.length + '\r\n'.length)
      return again ?? reader.read(text)
    } catch (error) {
      return String(error)
    }
  }
  const fewHeads = fc.array(someHead, { minLength: 1, maxLength: 3 })
  const sequence = fewHeads.chain((heads) => fc.array(fc.constantFrom(...heads), { maxLength: 8 }))
  const sameButLength = fc.array(fc.tuple(fc.constantFrom('Date: a', 'Date: b'), someLength), { maxLength: 8 })
  const near = sameButLength.map((all) =>
    all.map(([date, length]) => `HTTP/1.1 200 OK\r\nX: y\r\nContent-Length:${length}\r\n${date}\r\n`),
  )
  fc.assert(
    fc.property(fc.oneof(sequence, near), (heads) => {
      const reader = new HeadReader()
      for (const text of heads) {
        const again = parsed(reader, text)
        assert.deepEqual(again, parsed(new HeadReader(), text))
        // Callers may modify a head that they received.
        if (typeof again !== 'object') continue
        again.headers['set-cookie']?.push('changed')
        again.headers['content-length'] = 'changed'
        again.headers.date = 'changed'
      }
    }),
    { numRuns: 300 },
  )
})

test('a request head contains exactly the given values, or is refused', () => {
  const request = {
    method: 'POST',
    path: '/a?b',
    headers: { x: 'é' },
    body: Buffer.from('ab'),
    headersTimeoutMs: 0,
    pauseTimeoutMs: 0,
  }
  const head = requestHead(request, 'h:1')
  assert.equal(head, 'POST /a?b HTTP/1.1\r\nhost: h:1\r\nx: é\r\ncontent-length: 2\r\n\r\n')
  assert.equal(joined(head, request.body).toString('latin1'), `${head}ab`)
  assert.match(requestHead({ ...request, body: null }, 'h'), /content-length: 0\r\n/)
  assert.doesNotMatch(requestHead({ ...request, method: 'GET', body: null }, 'h'), /content-length/)
  for (const wrong of [
    { headers: { x: 'a\r\ny: b' } },
    { headers: { x: 'a\nb' } },
    { headers: { x: '☃' } },
    { headers: { 'x y': 'a' } },
    { headers: { 'x:': 'a' } },
    { path: '/a b' },
    { path: 'http://other/' },
    { path: '/a\r\n' },
    { method: 'GET /' },
  ])
    assert.throws(() => requestHead({ ...request, ...wrong }, 'h'), TypeError)
  assert.ok(new MalformedResponseError('x') instanceof Error)
})

test('earlier requests to an origin do not affect a request', () => {
  const name = fc.constantFrom(...Array.from({ length: 40 }, (_, n) => `x-${n}`), 'x y', 'X-0')
  const value = fc.constantFrom('a', 'b', '', 'a\r\ny: b', '☃', 'c'.repeat(3000))
  const request = fc.record({
    method: fc.constantFrom('GET', 'POST', '', 'P T'),
    path: fc.constantFrom('/a', '/b', '', '/a b', `/${'c'.repeat(3000)}`),
    headers: fc.dictionary(name, value, { maxKeys: 50 }),
    body: fc.constantFrom(null, Buffer.from('ab')),
    headersTimeoutMs: fc.constant(0),
    pauseTimeoutMs: fc.constant(0),
  })
  const parsed = (heads: RequestHeads, one: ClientRequest) => {
    try {
      return heads.of(one)
    } catch (error) {
      return String(error)
    }
  }
  const fine = {
    headers: fc.dictionary(
      name.filter((text) => text !== 'x y'),
      fc.constantFrom('a', 'b'),
    ),
  }
  const mostlyFine = fc.oneof(
    request,
    fc.tuple(request, fc.record(fine)).map(([one, { headers }]) => ({ ...one, headers })),
  )
  fc.assert(
    fc.property(fc.array(mostlyFine, { maxLength: 8 }), (requests) => {
      const heads = new RequestHeads('h')
      for (const one of requests) assert.equal(parsed(heads, one), parsed(new RequestHeads('h'), one))
    }),
  )
})

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { until } from '@plat/testkit/until'
import type { Exchange, ListenOptions } from './listen.ts'
import { dial, raw, serving } from './testing/serving.ts'

const GET = 'GET /hello HTTP/1.1\r\nHost: localhost\r\n'
const POST = 'POST /echo HTTP/1.1\r\nHost: localhost\r\n'

/** Status of each response, in order of arrival. */
function statuses(text: string): string[] {
  return [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status = '']) => status)
}

const ambiguous: Record<string, string> = {
  'a coding list': `${POST}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
  'an empty coding': `${POST}Transfer-Encoding: ,chunked\r\n\r\n0\r\n\r\n`,
  'two codings': `${POST}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n`,
  'length and coding': `${POST}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  'two lengths': `${POST}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`,
  'two hosts': 'GET /hello HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n',
  'two authorizations': 'GET /hello HTTP/1.1\r\nHost: localhost\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n',
  'no host': 'GET /hello HTTP/1.1\r\n\r\n',
  'obs-text in a credential': 'GET /hello HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer a\x85b\r\n\r\n',
  'a folded header': 'GET /hello HTTP/1.1\r\nHost: localhost\r\nX-A: b\r\n c\r\n\r\n',
  'an absolute target': 'GET http://localhost/hello HTTP/1.1\r\nHost: localhost\r\n\r\n',
  'a space before the colon': 'GET /hello HTTP/1.1\r\nHost : localhost\r\n\r\n',
  'a bare line feed': 'GET /hello HTTP/1.1\nHost: localhost\n\n',
  'a bare line feed between headers': 'GET /hello HTTP/1.1\r\nHost: localhost\nX-A: b\r\n\r\n',
  'a bare carriage return': 'GET /hello HTTP/1.1\r\nHost: localhost\rX-A: b\r\n\r\n',
  'a folded first header': 'GET /hello HTTP/1.1\r\n X-A: b\r\nHost: localhost\r\n\r\n',
  'a name with a space': 'GET /hello HTTP/1.1\r\nHost: localhost\r\nX A: b\r\n\r\n',
  'a line without a colon': 'GET /hello HTTP/1.1\r\nHost: localhost\r\nX-A\r\n\r\n',
  'a NUL in a value': 'GET /hello HTTP/1.1\r\nHost: localhost\r\nX-A: b\0c\r\n\r\n',
  'an upper-case coding': `${POST}Transfer-Encoding: CHUNKED\r\n\r\n0\r\n\r\n`,
  'a coding with a parameter': `${POST}Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n`,
  'the coding twice': `${POST}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  'a list of equal lengths': `${POST}Content-Length: 2, 2\r\n\r\n{}`,
  'the same length twice': `${POST}Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}`,
  'a length with a sign': `${POST}Content-Length: +2\r\n\r\n{}`,
  'a hexadecimal length': `${POST}Content-Length: 0x2\r\n\r\n{}`,
  'an empty length': `${POST}Content-Length: \r\n\r\n{}`,
  'a length beyond all numbers': `${POST}Content-Length: 99999999999999999999\r\n\r\n{}`,
  'another version': 'GET /hello HTTP/2.0\r\nHost: localhost\r\n\r\n',
  'no version': 'GET /hello\r\nHost: localhost\r\n\r\n',
  'a target with a space': 'GET /hello world HTTP/1.1\r\nHost: localhost\r\n\r\n',
  'a target without a slash': 'GET hello HTTP/1.1\r\nHost: localhost\r\n\r\n',
  'an unknown expectation': `${POST}Expect: 200-ok\r\nContent-Length: 2\r\n\r\n{}`,
  'an expectation in a list': `${POST}Expect: 100-continue, x\r\nContent-Length: 2\r\n\r\n{}`,
}

for (const [name, text] of Object.entries(ambiguous)) {
  test(`a head that two parsers could read differently is refused: ${name}`, async () => {
    let handled = 0
    const count: ListenOptions['api'] = (app) => {
      app.get('/hello', async () => ({ handled: ++handled }))
      app.post('/echo', async () => ({ handled: ++handled }))
    }
    await serving({ api: count }, async ({ port }) => {
      const answer = await raw(port, `${text}GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n`)
      assert.match(answer, /^HTTP\/1\.1 400 /)
      assert.match(answer, /x-plat-request-id: [0-9a-f-]{36}/)
      assert.match(answer, /connection: close/i)
      assert.equal(answer.split('HTTP/1.1 ').length - 1, 1, 'nothing after it is answered')
      assert.equal(handled, 0)
    })
  })
}

test('headers that identify the caller allow visible ASCII only; other headers allow any text', async () => {
  const api: ListenOptions['api'] = (app) => void app.get('/hello', async () => ({}))
  await serving({ api }, async ({ port }) => {
    const tell = (name: string, byte: number) =>
      raw(port, `${GET}Connection: close\r\n${name}: a${String.fromCharCode(byte)}b\r\n\r\n`)
    for (let byte = 0; byte < 256; byte++) {
      const answer = await tell('Mcp-Name', byte)
      const taken = byte === 9 || (byte >= 0x20 && byte < 0x7f)
      assert.deepEqual(statuses(answer), [taken ? '200' : '400'], `byte ${byte}`)
      if (byte >= 0x80) assert.match(answer, /"message":"The header mcp-name holds bytes outside ASCII\."/)
      if (byte >= 0x7f) assert.deepEqual(statuses(await tell('X-Note', byte)), [byte === 0x7f ? '400' : '200'])
    }
  })
})

test('a process started with lenient parsing flags still parses strictly', async () => {
  const script = `
    import { raw, serving } from './testing/serving.ts'
    const handle = ({ response }) => response.end()
    await serving({ raw: [{ prefix: '/', handle }] }, async ({ port }) => {
      console.log(await raw(port, 'GET / HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\nX-A: a\\u0001b\\r\\n\\r\\n'))
    })`
  const args = ['--insecure-http-parser', '--input-type=module', '--eval', script]
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: import.meta.dirname })
  assert.match(stdout, /^HTTP\/1\.1 400 /)
})

test('a duplicate header is found in any case and position; a longer name is a different header', async () => {
  const api: ListenOptions['api'] = (app) => void app.get('/hello', async () => ({}))
  await serving({ api }, async ({ port }) => {
    const tell = (...lines: string[]) => raw(port, `${GET}Connection: close\r\n${lines.join('\r\n')}\r\n\r\n`)
    for (const name of ['host', 'authorization', 'dpop', 'content-type', 'origin']) {
      const upper = name.toUpperCase()
      const answer = await tell(`${upper}: a`, 'X-Between: c', `${name}: a`)
      assert.match(answer, new RegExp(`^HTTP/1.1 400 [^]*"message":"The header ${name} must come once\\."`))
      const longer = `${name}${'x'.repeat(32)}`
      assert.deepEqual(statuses(await tell(`${longer}: a`, `${longer}: a`)), ['200'])
    }
    assert.deepEqual(statuses(await tell('X-A: a', 'X-A: a', 'Dpop: a', 'Origin: a')), ['200'])
  })
})

const framing: Record<string, string> = {
  'a size that is not a number': 'zz\r\n{}\r\n0\r\n\r\n',
  'a size with a sign': '-2\r\n{}\r\n0\r\n\r\n',
  'a size with a prefix': '0x2\r\n{}\r\n0\r\n\r\n',
  'a size after a space': ' 2\r\n{}\r\n0\r\n\r\n',
  'a size beyond all numbers': 'fffffffffffffffff\r\n{}\r\n0\r\n\r\n',
  'bare line feeds': '2\n{}\n0\n\n',
  'a bare carriage return': '2\r{}\r\n0\r\n\r\n',
  'a chunk longer than its size': '2\r\n{}x\r\n0\r\n\r\n',
  'a broken trailer': '2\r\n{}\r\n0\r\nX Y: z\r\n\r\n',
}

for (const [name, chunks] of Object.entries(framing)) {
  test(`a chunked body with an ambiguous end is refused: ${name}`, async () => {
    let handled = 0
    const count: ListenOptions['api'] = (app) => {
      app.post('/echo', async () => ({ handled: ++handled }))
      app.get('/hello', async () => ({ handled: ++handled }))
    }
    await serving({ api: count }, async ({ port }) => {
      const head = `${POST}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`
      assert.deepEqual(statuses(await raw(port, `${head}${chunks}${GET}\r\n`)), ['400'])
      assert.equal(handled, 0)
    })
  })
}

test('a request with more headers than are read is refused', async () => {
  const api: ListenOptions['api'] = (app) => void app.get('/hello', async () => ({}))
  await serving({ api, limits: { maxHeaders: 40 } }, async ({ port }) => {
    const many = (count: number) => Array.from({ length: count }, (_, i) => `X-${i}: a\r\n`).join('')
    assert.deepEqual(statuses(await raw(port, `${GET}Connection: close\r\n${many(38)}\r\n`)), ['200'])
    assert.deepEqual(statuses(await raw(port, `${GET}${many(39)}Authorization: Bearer a\r\n\r\n`)), ['431'])
    assert.deepEqual(statuses(await raw(port, `${GET}${many(500)}Transfer-Encoding: gzip, chunked\r\n\r\n`)), ['431'])
  })
})

test('a client that sends Expect: 100-continue gets 100 only for a valid head', async () => {
  const api: ListenOptions['api'] = (app) => void app.post('/echo', async ({ body }) => body)
  await serving({ api }, async ({ port }) => {
    const { socket, received } = dial(port)
    const head = `${POST}Expect: 100-continue\r\nConnection: close\r\nContent-Type: application/json\r\n`
    socket.write(`${head}Content-Length: 2\r\n\r\n`)
    await new Promise((resolve) => socket.once('data', resolve))
    socket.write('{}')
    assert.deepEqual(statuses(await received), ['100', '200'])
    const bad = `${POST}Expect: 100-continue\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n`
    assert.deepEqual(statuses(await raw(port, bad)), ['400'])
  })
})

/** Holds each request until the test answers it. */
function holding() {
  const held: Exchange[] = []
  return { held, raw: [{ prefix: '/', handle: (exchange: Exchange) => void held.push(exchange) }] }
}

test('a parse error behind a request in flight does not answer that request', async () => {
  const { held, raw: routes } = holding()
  await serving({ raw: routes }, async ({ port }) => {
    const { socket, received } = dial(port)
    socket.write(`${GET}\r\n`)
    await until(() => held.length === 1, 'the request')
    socket.write('nonsense\r\n\r\n')
    socket.write('and more of it\r\n\r\n')
    const { response } = held[0] ?? assert.fail()
    await until(() => response.getHeader('connection') === 'close', 'the listener to have seen it')
    response.end('done')
    const answer = await received
    assert.deepEqual(statuses(answer), ['200'])
    assert.match(answer, /done/)
  })
})

test('a request answered before its body ended gets no second response when the rest never arrives', async () => {
  const { held, raw: routes } = holding()
  await serving({ raw: routes }, async ({ port }) => {
    const { socket, received } = dial(port)
    socket.write(`${POST}Content-Length: 100\r\n\r\nabc`)
    await until(() => held.length === 1, 'the request')
    held[0]?.response.writeHead(413).end()
    await new Promise((resolve) => socket.once('data', resolve))
    socket.end()
    assert.deepEqual(statuses(await received), ['413'])
  })
})

for (const [what, head] of Object.entries({
  'what is not a request': 'nonsense\r\n\r\n',
  'an ambiguous head': `${POST}Host: localhost\r\nContent-Length: 3000000\r\n\r\n`,
  'a method that opens a tunnel': 'CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n',
})) {
  test(`the refusal of ${what} arrives although more bytes follow it`, async () => {
    await serving({ limits: { lingerMs: 60_000 } }, async ({ port }) => {
      const { socket, received } = dial(port)
      socket.write(head)
      await new Promise((resolve) => socket.once('data', resolve))
      for (let i = 0; i < 10; i++) {
        socket.write(Buffer.alloc(100_000))
        await new Promise((resolve) => setImmediate(resolve))
      }
      socket.end()
      assert.match((await received).slice(0, 16), /^HTTP\/1\.1 (?:400|501) /)
      assert.equal(socket.errored, null)
    })
  })
}

test('a refused connection that its client keeps open is closed', async () => {
  await serving({ limits: { lingerMs: 50 } }, async ({ port }) => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    socket.on('error', () => {})
    socket.write('GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n')
    socket.resume()
    await once(socket, 'end')
    const sending = setInterval(() => socket.writable && socket.write('x'), 10)
    await new Promise((resolve) => socket.once('close', resolve))
    clearInterval(sending)
  })
})

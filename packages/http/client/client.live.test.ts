import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createServer as createTlsServer } from 'node:tls'
import { type Clock, poolTable, systemClock, TestClock } from '@plat/core'
import { silentLog } from '@plat/process'
import { createAuthority } from '@plat/testkit/authority'
import { listening } from '@plat/testkit/local'
import { createDialer } from '../dial/dialer.ts'
import { dialFault } from '../dial/errors.ts'
import { ask, clientOf, get, HEADERS_MS, IDLE_MS, ok, plain, responseText, serve, until } from './testing/answers.ts'

const SHARE = poolTable.upstream_connections.shares[0].max

test('a connection serves one request after the other, and connections are opened up to the limit', async (t) => {
  const { sockets, url } = await serve(t, (socket, text) => socket.write(ok(text.split('\r\n')[0] ?? '')))
  const client = clientOf(t, url)
  assert.equal(await responseText(client), '200 POST /x HTTP/1.1')
  assert.equal(await responseText(client, get), '200 GET /x HTTP/1.1')
  assert.equal(sockets.length, 1)
  await Promise.all([responseText(client), responseText(client)])
  assert.equal(sockets.length, 2)
})

test('one origin carries a thousand open streams, and further calls', async (t) => {
  const { sockets, url } = await serve(t, (socket, text) => {
    if (text.startsWith('GET')) socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: open\n\n')
    else socket.write(ok('beside'))
  })
  const client = clientOf(t, url)
  const streams = Array.from({ length: 1000 }, () => ask(client, { ...get, headersTimeoutMs: 0 }))
  await Promise.all(streams.map(({ answer }) => answer.head))
  assert.equal(await responseText(client), '200 beside')
  assert.equal(sockets.length, 1001)
  for (const { sending } of streams) sending.abort(new Error('enough'))
})

test('a caller at its connection limit is refused while another is served', async (t) => {
  const { sockets, url } = await serve(t, (socket, text) => {
    if (text.startsWith('GET')) socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: open\n\n')
    else socket.write(ok('beside'))
  })
  const refused: string[] = []
  const meter = { refused: (bound: string) => void refused.push(bound), watch() {} }
  const client = clientOf(t, url, { meter })
  const stream = { ...get, headersTimeoutMs: 0, caller: 'greedy' }
  const streams = Array.from({ length: SHARE }, () => ask(client, stream))
  await Promise.all(streams.map(({ answer }) => answer.head))
  assert.equal(await responseText(client, { ...plain, caller: 'greedy' }), 'busy')
  assert.deepEqual(refused, ['share'])
  assert.equal(await responseText(client, { ...plain, caller: 'other' }), '200 beside')
  // Every way to end releases the slot.
  streams[0]?.sending.abort(new Error('enough'))
  assert.equal(await responseText(client, { ...plain, caller: 'greedy' }), '200 beside')
  assert.equal(sockets.length, SHARE + 1)
  for (const { sending } of streams) sending.abort(new Error('enough'))
})

test('a connection is not reused when the server says close, or sends too much', async (t) => {
  for (const reply of [
    ok('x', 'Connection: close\r\n'),
    `${ok('x')}HTTP/1.1 200 OK`,
    ok('x', 'Keep-Alive: timeout=1\r\n'),
  ]) {
    const { sockets, url } = await serve(t, (socket) => socket.write(reply))
    const client = clientOf(t, url)
    for (const connections of [1, 2]) {
      assert.equal(await responseText(client), '200 x')
      assert.equal(sockets.length, connections, reply)
    }
  }
})

test('an unsolicited response ends a connection', async (t) => {
  const { sockets, url } = await serve(t, (socket) => socket.write(ok('x')))
  const client = clientOf(t, url)
  await responseText(client)
  sockets[0]?.write(ok('a lie'))
  await until(() => sockets[0]?.destroyed === true)
  assert.equal(await responseText(client), '200 x')
  assert.equal(sockets.length, 2)
})

test('a read-only request is retried once when its idle connection was closed; a call never is', async (t) => {
  const seen: string[] = []
  // Each connection answers its first request and is dead for the second.
  const { sockets, url } = await serve(t, (socket, text) => {
    seen.push(text.slice(0, 4))
    if (socket.bytesWritten === 0) socket.write(ok('x'))
    else socket.resetAndDestroy()
  })
  const client = clientOf(t, url)
  await responseText(client, get)
  assert.equal(await responseText(client, get), '200 x')
  assert.equal(sockets.length, 2)
  assert.equal(await responseText(client), 'lost')
  assert.deepEqual(seen, ['GET ', 'GET ', 'GET ', 'POST'])
})

test('a call is sent again once when the connection ended before the write, or the write failed', async (t) => {
  for (const idleMs of [IDLE_MS, 0]) {
    const clock = new TestClock()
    const seen: string[] = []
    const { sockets, url } = await serve(t, (socket, text, nth) => {
      seen.push(`${nth} ${text.slice(0, 4)}`)
      socket.write(ok(`from ${nth}`))
    })
    const client = clientOf(t, url, { clock })
    assert.equal(await responseText(client), '200 from 0')
    await clock.advance(idleMs)
    // Both happen in one turn: the kernel has the end when the call arrives, but it was not read yet.
    await new Promise((resolve) => setImmediate(resolve))
    sockets[0]?.resetAndDestroy()
    assert.equal(await responseText(client), '200 from 1', `idle for ${idleMs} ms`)
    assert.deepEqual(seen, ['0 POST', '1 POST'])
  }
})

test('a call is not sent a third time, nor when its connection was closed after the write', async (t) => {
  const seen: string[] = []
  const { url } = await serve(t, (socket, text, nth) => {
    seen.push(`${nth} ${text.slice(0, 4)}`)
    if (socket.bytesWritten === 0) socket.write(ok('x'))
    // An orderly end without a byte: the server may have acted on the call.
    else socket.end()
  })
  const client = clientOf(t, url)
  assert.equal(await responseText(client), '200 x')
  assert.equal(await responseText(client), 'lost')
  assert.deepEqual(seen, ['0 POST', '0 POST'])
})

test('an idle connection is closed after 4 s without a server limit, and after 30 s at most', async (t) => {
  for (const { lines, keptMs } of [
    { lines: '', keptMs: 4_000 },
    { lines: 'Keep-Alive: timeout=600\r\n', keptMs: 30_000 },
  ]) {
    const clock = new TestClock()
    const { sockets, url } = await serve(t, (socket) => socket.write(ok('x', lines)))
    const client = clientOf(t, url, { clock })
    await responseText(client)
    await clock.advance(keptMs - 1)
    await responseText(client)
    assert.equal(sockets.length, 1)
    await clock.advance(keptMs)
    await until(() => sockets[0]?.destroyed === true)
  }
})

test('a request is not retried on a new connection, nor after a byte of a response', async (t) => {
  const { sockets, url } = await serve(t, (socket, _text, nth) => {
    if (nth === 0) return socket.destroy()
    if (socket.bytesWritten === 0) return socket.write(ok('x'))
    return socket.end('HTTP')
  })
  const client = clientOf(t, url)
  assert.equal(await responseText(client, get), 'lost')
  await responseText(client, get)
  assert.equal(await responseText(client, get), 'lost')
  assert.equal(sockets.length, 2)
})

test('an idle connection is closed before the server closes it', async (t) => {
  const clock = new TestClock()
  const { sockets, url } = await serve(t, (socket) => socket.write(ok('x', 'Keep-Alive: timeout=5\r\n')))
  const client = clientOf(t, url, { clock })
  await responseText(client)
  await clock.advance(3999)
  await responseText(client)
  assert.equal(sockets.length, 1)
  await clock.advance(4000)
  await until(() => sockets[0]?.destroyed === true)
})

test('silence before the head and within the body is limited, a pause of the reader is not', async (t) => {
  const clock = new TestClock()
  const { sockets, url } = await serve(t, (socket, text) => {
    if (text.startsWith('POST')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf')
  })
  const client = clientOf(t, url, { clock })
  const silent = ask(client, get)
  await until(() => (sockets[0]?.bytesRead ?? 0) > 0)
  await clock.advance(HEADERS_MS)
  assert.equal(dialFault(await silent.answer.over.promise), 'timeout')
  const request = { ...plain, pauseTimeoutMs: 500 }
  const stuck = ask(client, request)
  await stuck.answer.head
  stuck.sending.pause()
  await clock.advance(10_000)
  stuck.sending.resume()
  await clock.advance(499)
  assert.deepEqual([stuck.answer.body, stuck.answer.failed], ['half', false])
  await clock.advance(1)
  assert.equal(dialFault(await stuck.answer.over.promise), 'timeout')
  await until(() => sockets.every(({ destroyed }) => destroyed))
})

test('a connection that is not established in time fails', async (t) => {
  const clock = new TestClock()
  const lookup = () => new Promise<never>(() => {})
  const client = clientOf(t, 'http://slow.example', { clock, lookup })
  const { answer } = ask(client)
  await clock.advance(10_000)
  assert.equal(dialFault(await answer.over.promise), 'timeout')
})

test('a paused reader stops the server', async (t) => {
  const piece = Buffer.alloc(1024 * 1024, 'x')
  const { sockets, url } = await serve(t, (socket) => {
    socket.write('HTTP/1.1 200 OK\r\n\r\n')
    for (let i = 0; i < 64; i++) socket.write(piece)
    socket.end()
  })
  const { answer, sending } = ask(clientOf(t, url))
  await answer.head
  sending.pause()
  const waiting = () => sockets[0]?.writableLength ?? 0
  assert.ok(waiting() > 32 * piece.length, 'the server still holds what was not read')
  sending.resume()
  assert.equal(await answer.over.promise, 'end')
  assert.equal(answer.body.length, 64 * piece.length)
})

test('an abort closes the connection, calls the receiver once, and does not affect the next request', async (t) => {
  const { sockets, url } = await serve(t, (socket, text) => {
    if (text.startsWith('POST')) socket.write(ok('x'))
  })
  const client = clientOf(t, url)
  const silent = ask(client, get)
  await until(() => (sockets[0]?.bytesRead ?? 0) > 0)
  const reason = new Error('not wanted')
  silent.sending.abort(reason)
  assert.equal(await silent.answer.over.promise, reason)
  await until(() => sockets[0]?.destroyed === true)
  const first = ask(client)
  assert.equal(await first.answer.over.promise, 'end')
  const second = ask(client)
  first.sending.abort(reason)
  assert.equal(await second.answer.over.promise, 'end')
})

test('a large body arrives whole; a response before the end of the request is accepted, but the connection is not reused', async (t) => {
  const body = Buffer.alloc(8 * 1024 * 1024, 'b')
  let bytes = 0
  const whole = await serve(t, (socket, text) => {
    bytes += text.length
    if (bytes > body.length) socket.write(ok(String(bytes - text.indexOf('\r\n\r\n') > body.length)))
  })
  assert.match(await responseText(clientOf(t, whole.url), { ...plain, body }), /^200 /)
  const hasty = await serve(t, (socket) => {
    socket.pause()
    socket.write(ok('too large'))
  })
  const client = clientOf(t, hasty.url)
  assert.equal(await responseText(client, { ...plain, body }), '200 too large')
  assert.equal(await responseText(client), '200 too large')
  assert.equal(hasty.sockets.length, 2)
})

test('closing the dialer fails requests in flight', async (t) => {
  const { sockets, url } = await serve(t, () => {})
  const dialer = createDialer({ log: silentLog })
  const { answer } = ask(dialer.client(url, 'mcp'))
  await until(() => (sockets[0]?.bytesRead ?? 0) > 0)
  await dialer.close()
  assert.equal(dialFault(await answer.over.promise), 'lost')
  assert.throws(() => dialer.client('http://127.0.0.1:1', 'mcp'), /closed/)
})

test('addresses are checked for every connection, as names and literals', async (t) => {
  const { sockets, url } = await serve(t, () => {})
  const lookup = async () => [{ address: '127.0.0.1', family: 4 }]
  const dialer = createDialer({ log: silentLog, lookup })
  t.after(() => dialer.close())
  for (const origin of [url, url.replace('127.0.0.1', 'inside.example'), 'http://[::1]:1'])
    assert.equal(await responseText(dialer.client(origin, 'web')), 'blocked', origin)
  assert.equal(await responseText(dialer.client('http://127.0.0.1:1', 'mcp')), 'refused')
  assert.equal(sockets.length, 0)
})

/** Starts a server with a certificate of `root` that requests a client certificate. */
async function serveTls(t: TestContext, name: string, clock: Clock) {
  const root = await createAuthority({ name: 'root', now: clock.now() })
  const issued = await root.issue({ name, dnsNames: [name] })
  const key = issued.privateKey.export({ format: 'pem', type: 'pkcs8' })
  const server = createTlsServer({
    cert: issued.pem,
    key,
    ca: root.pem,
    requestCert: true,
    rejectUnauthorized: false,
    ALPNProtocols: ['h2', 'http/1.1'],
  })
  server.on('secureConnection', (socket) => {
    socket.on('error', () => {})
    socket.on('data', () => socket.write(ok(`${socket.alpnProtocol} ${socket.getPeerCertificate().subject?.CN}`)))
  })
  const port = await listening(server)
  t.after(() => server.close())
  return { root, port }
}

test('over TLS the certificate is checked for the name, and the client certificate is sent', async (t) => {
  const { root, port } = await serveTls(t, 'tools.example', systemClock)
  const lookup = async () => [{ address: '127.0.0.1', family: 4 }]
  const dialer = createDialer({ log: silentLog, lookup })
  t.after(() => dialer.close())
  const own = await root.issue({ name: 'gateway' })
  const keyPEM = String(own.privateKey.export({ format: 'pem', type: 'pkcs8' }))
  const clientCert = { certPEM: own.pem, keyPEM }
  const url = `https://tools.example:${port}`
  const trusting = dialer.client(url, 'mcp', { caPEM: root.pem, clientCert })
  assert.equal(await responseText(trusting), '200 http/1.1 gateway')
  assert.equal(await responseText(trusting), '200 http/1.1 gateway')
  assert.equal(await responseText(dialer.client(url, 'mcp')), 'tls')
  assert.equal(await responseText(dialer.client(url.replace('tools', 'other'), 'mcp', { caPEM: root.pem })), 'tls')
})

test('a streamed body is sent as the server reads it, and an early response or a wrong length closes the connection', async (t) => {
  const { sockets, url } = await serve(t, (socket, text) => {
    if (text.startsWith('POST /early')) socket.write(ok('enough'))
    else if (text.endsWith('end')) socket.write(ok(`${text.length - text.indexOf('\r\n\r\n') - 4}`))
  })
  const client = clientOf(t, url)
  async function* chunks(texts: readonly string[]) {
    for (const one of texts) yield Buffer.from(one)
    if (texts.includes('part')) await new Promise(() => {})
  }
  const send = (path: string, length: number, texts: readonly string[]) =>
    responseText(client, { ...plain, path, body: { length, chunks: () => chunks(texts) } })
  assert.equal(await send('/x', 9, ['middle', 'end']), '200 9')
  assert.equal(await send('/x', 3, ['end']), '200 3')
  assert.equal(sockets.length, 1)
  assert.equal(await send('/early', 1_000, ['part']), '200 enough')
  assert.equal(await send('/x', 1_000, ['short']), 'lost')
  assert.equal(await send('/x', 2, ['long']), 'lost')
})

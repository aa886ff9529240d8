import assert from 'node:assert/strict'
import http from 'node:http'
import { connect } from 'node:net'
import { after, test } from 'node:test'
import { listening } from '@plat/testkit/local'
import { ResponseSink, removeCredentials, wireOf } from './exchange.ts'

const servers: http.Server[] = []
after(() => {
  for (const server of servers) server.close()
})

interface Parts {
  readonly request: http.IncomingMessage
  readonly response: http.ServerResponse
}

/** A server on loopback; `handle` gets the sink of each response, `gone` resolves when a caller disconnected early. */
async function serve(handle: (sink: ResponseSink, exchange: Parts) => unknown, stalledMs?: number) {
  const gone = Promise.withResolvers<void>()
  const server = http.createServer((request, response) => {
    void handle(new ResponseSink('d1', response, (complete) => complete || gone.resolve(), stalledMs), {
      request,
      response,
    })
  })
  servers.push(server)
  const port = await listening(server)
  return { url: `http://127.0.0.1:${port}/mcp/notes?a=b`, gone: gone.promise }
}

const text = new TextEncoder()

test('a whole response has its length, decision id and overhead', async () => {
  const { url } = await serve((sink) => sink.reply({ status: 200, headers: { 'x-a': 'b' } }, 0.25, text.encode('{}')))
  const answer = await fetch(url)
  const names = ['content-length', 'x-a', 'x-plat-decision-id', 'x-plat-overhead-ms']
  assert.deepEqual(
    names.map((name) => answer.headers.get(name)),
    ['2', 'b', 'd1', '0.25'],
  )
  assert.equal(await answer.text(), '{}')
})

test('a whole response of any length is written unchanged', async () => {
  for (const size of [256, 64 * 1024, 64 * 1024 + 1]) {
    const bytes = Uint8Array.from({ length: size }, (_, at) => at % 256)
    // A part of a larger buffer, as bodies often are.
    const part = Buffer.concat([Buffer.from('before'), bytes, Buffer.from('after')]).subarray(6, 6 + size)
    const { url } = await serve((sink) => sink.reply({ status: 200, headers: {} }, 0, part))
    const answer = await fetch(url)
    assert.deepEqual(new Uint8Array(await answer.arrayBuffer()), bytes)
  }
})

test('a response without a body has no content-length', async () => {
  const { url } = await serve((sink) => sink.reply({ status: 204, headers: {} }, 0, new Uint8Array()))
  assert.equal((await fetch(url)).headers.get('content-length'), null)
})

test('a flushed head arrives before the first event', async () => {
  let finish = () => {}
  const { url } = await serve((sink) => {
    sink.open({ status: 200, headers: { 'content-type': 'text/event-stream' } }, 1, true)
    finish = () => sink.end()
  })
  const answer = await fetch(url)
  assert.equal(answer.headers.get('x-plat-decision-id'), 'd1')
  finish()
  assert.equal(await answer.text(), '')
})

/** Head and body as received on the wire. */
async function wireOfAnswer(url: string, version: string): Promise<readonly [string, string]> {
  const { hostname, port, pathname } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.end(`GET ${pathname} HTTP/${version}\r\nhost: x\r\nconnection: close\r\n\r\n`)
  const wire = (await socket.setEncoding('latin1').toArray()).join('')
  const end = wire.indexOf('\r\n\r\n')
  return [wire.slice(0, end), wire.slice(end + 4)]
}

test('a head has its headers in order, each once, and those set before', async () => {
  const head = { status: 429, headers: { 'content-type': 'application/json', 'retry-after': '3' } }
  const fields = [
    'content-type: application/json',
    'retry-after: 3',
    'x-plat-decision-id: d1',
    'x-plat-overhead-ms: 1.5',
  ]
  for (const set of [false, true]) {
    const { url } = await serve((sink, { response }) => {
      if (set) response.setHeader('vary', 'origin')
      sink.reply(head, 1.5, text.encode('{}'))
    })
    const [wire] = await wireOfAnswer(url, '1.1')
    const [status, ...lines] = wire.split('\r\n').filter((line) => !line.startsWith('Date: '))
    assert.equal(status, 'HTTP/1.1 429 Too Many Requests')
    assert.deepEqual(lines, [...(set ? ['vary: origin'] : []), ...fields, 'content-length: 2', 'Connection: close'])
  }
})

test('a stream is sent in one chunk per write, and without chunks to an HTTP/1.0 client', async () => {
  const long = 'x'.repeat(64 * 1024 + 1)
  const pieces = ['data: 1\n\n', long, 'y'.repeat(64 * 1024), '\u00e9\u0000']
  const { url } = await serve((sink) => {
    sink.open({ status: 200, headers: { 'content-type': 'text/event-stream' } }, 0, false)
    for (const piece of pieces) void sink.write(Buffer.from(piece, 'latin1'))
    void sink.write(new Uint8Array())
    sink.end()
  })
  const chunks = pieces.map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`).join('')
  assert.equal((await wireOfAnswer(url, '1.1'))[1], `${chunks}0\r\n\r\n`)
  assert.equal((await wireOfAnswer(url, '1.0'))[1], pieces.join(''))
})

test('a writer waits for a slow caller, and continues when the caller disconnects', async () => {
  const waited = Promise.withResolvers<void>()
  const { url, gone } = await serve(async (sink) => {
    sink.open({ status: 200, headers: {} }, 0, false)
    let room: undefined | void | Promise<void>
    for (let count = 0; count < 10_000 && room === undefined; count++) room = sink.write(new Uint8Array(65_536))
    assert.ok(room instanceof Promise)
    waited.resolve(room)
  })
  const request = http.get(url, (response) => {
    response.pause()
    setTimeout(() => request.destroy(), 20)
  })
  request.on('error', () => {})
  await waited.promise
  await gone
})

test('a caller that received the whole response does not count as disconnected', async () => {
  let left = false
  const { url, gone } = await serve((sink) => sink.reply({ status: 200, headers: {} }, 0, text.encode('x')))
  void gone.then(() => {
    left = true
  })
  await (await fetch(url, { headers: { connection: 'close' } })).text()
  await new Promise((resolve) => setTimeout(resolve, 20))
  assert.equal(left, false)
})

test('path and query are separate, and credentials can be removed', async () => {
  const seen: unknown[] = []
  const { url } = await serve((sink, { request }) => {
    const wire = wireOf(request)
    removeCredentials(wire)
    seen.push(wire.method, wire.path, wire.query, Object.keys(wire.headers).sort())
    sink.reply({ status: 200, headers: {} }, 0, new Uint8Array())
  })
  const headers = { authorization: 'Bearer t', dpop: 'p', cookie: 'c', 'proxy-authorization': 'x', 'x-kept': '1' }
  await new Promise((resolve) =>
    http.get(url, { headers, agent: false }, (response) => response.resume().on('end', resolve)),
  )
  assert.deepEqual(seen, ['GET', '/mcp/notes', 'a=b', ['connection', 'host', 'x-kept']])
})

test('a caller that stops reading a large whole response is disconnected, and one that reads slowly is not', async () => {
  const body = new Uint8Array(32 * 1024 * 1024)
  const { url, gone } = await serve((sink) => sink.reply({ status: 200, headers: {} }, 0, body), 1000)
  const reading = connect(Number(new URL(url).port), '127.0.0.1')
  reading.write('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
  let size = 0
  for await (const chunk of reading) {
    const before = size
    size += chunk.length
    // Takes longer than the limit in total, but no single pause does.
    if (Math.floor(size / 2 ** 22) !== Math.floor(before / 2 ** 22))
      await new Promise((resolve) => setTimeout(resolve, 200))
  }
  assert.ok(size > body.length, `${size} bytes`)
  const stalled = connect(Number(new URL(url).port), '127.0.0.1')
  stalled.on('error', () => {})
  stalled.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  stalled.pause()
  await gone
  stalled.destroy()
})

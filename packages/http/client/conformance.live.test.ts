import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { type TestContext, test } from 'node:test'
import { silentLog } from '@plat/process'
import { listening } from '@plat/testkit/local'
import fc from 'fast-check'
import { request } from 'undici'
import { createDialer, type Dialer } from '../dial/dialer.ts'
import { responseBytes } from './testing/responses.ts'

/** Starts a server that answers each connection with fixed bytes and ends it. */
async function meeting(t: TestContext) {
  let reply: Buffer = Buffer.alloc(0)
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end(reply))
  })
  const port = await listening(server)
  t.after(() => server.close())
  const dialer = createDialer({ log: silentLog })
  t.after(() => dialer.close())
  const origin = `http://127.0.0.1:${port}`
  /** Parses the same bytes with undici and with the client. */
  return async (bytes: Buffer, method: 'GET' | 'HEAD' = 'GET') => {
    reply = bytes
    return [await overUndici(origin, method), await overClient(dialer, origin, method)] as const
  }
}

async function overUndici(origin: string, method: 'GET' | 'HEAD'): Promise<string> {
  try {
    const { statusCode, headers, body } = await request(origin, { method, reset: true })
    const bytes = Buffer.from(await body.arrayBuffer())
    return `${statusCode} ${String(headers['content-type'])} ${bytes.toString('latin1')}`
  } catch {
    return 'refused'
  }
}

function overClient(dialer: Dialer, origin: string, method: 'GET' | 'HEAD'): Promise<string> {
  const requested = { method, path: '/', headers: {}, body: null, headersTimeoutMs: 0, pauseTimeoutMs: 0 }
  return new Promise((resolve) => {
    let result = ''
    dialer.client(origin, 'mcp').send(requested, {
      onHead: (status, headers) => {
        result = `${status} ${String(headers['content-type'])} `
      },
      onData: (bytes) => {
        result += Buffer.from(bytes).toString('latin1')
      },
      onEnd: () => resolve(result),
      onFailure: () => resolve('refused'),
    })
  })
}

const head = (lines: string, body = 'abc') => Buffer.from(`HTTP/1.1 200 OK\r\n${lines}\r\n\r\n${body}`, 'latin1')

test('undici and the client read a response alike', async (t) => {
  const both = await meeting(t)
  const property = fc.asyncProperty(responseBytes, fc.constantFrom('GET', 'HEAD'), async ({ bytes }, method) => {
    const [theirs, ours] = await both(bytes, method)
    // undici lists repeated headers, the client joins them.
    assert.equal(ours.replaceAll(', ', ','), theirs.replaceAll(', ', ','))
  })
  await fc.assert(property, { numRuns: 100 })
})

test('the client refuses what undici refuses', async (t) => {
  const both = await meeting(t)
  for (const bytes of [
    head('Content-Length: 4'),
    head('Content-Length: 3\r\nContent-Length: 4'),
    head('Content-Length: x'),
    head('Content-Length: 3\r\nTransfer-Encoding: chunked', '3\r\nabc\r\n0\r\n\r\n'),
    head('Transfer-Encoding: chunked', '3\r\nabcd\r\n0\r\n\r\n'),
    head('Transfer-Encoding: chunked', 'x\r\nabc\r\n0\r\n\r\n'),
    head('Transfer-Encoding: chunked', '3\r\nabc\r\n'),
    head('no colon'),
    head('X: a\0b'),
    head('X y: a'),
    head('X: a\r\n folded\r\nContent-Length: 3'),
    Buffer.from('hello\r\n\r\n'),
    Buffer.from('HTTP/1.1 200 OK\r\nContent-Le'),
  ])
    assert.deepEqual(await both(bytes), ['refused', 'refused'], bytes.toString('latin1'))
})

test('the client is stricter where a message is ambiguous', async (t) => {
  const both = await meeting(t)
  for (const bytes of [
    head('Transfer-Encoding: gzip, chunked', '3\r\nabc\r\n0\r\n\r\n'),
    head('Transfer-Encoding: identity'),
    Buffer.from('HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n'),
  ]) {
    const [theirs, ours] = await both(bytes)
    assert.notEqual(theirs, 'refused', bytes.toString('latin1'))
    assert.equal(ours, 'refused', bytes.toString('latin1'))
  }
})

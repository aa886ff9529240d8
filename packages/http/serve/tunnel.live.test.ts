import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { until } from '@plat/testkit/until'
import type { TunnelRequest } from './listen.ts'
import { dial, raw, serving } from './testing/serving.ts'

const CONNECT = 'CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n'

/** Sends the target, then echoes everything. */
const echo = ({ request, socket }: TunnelRequest) => {
  socket.write(`HTTP/1.1 200 OK\r\n\r\n${request.url} `)
  socket.pipe(socket)
}

test('a handler gets the connection with the bytes behind its head, also after earlier requests', async () => {
  const api = (app: { get(path: string, answer: () => Promise<string>): unknown }) =>
    void app.get('/', async () => 'page')
  await serving({ tunnel: echo, api }, async ({ port }) => {
    const { socket, received } = dial(port)
    socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await once(socket, 'data')
    socket.end(`${CONNECT}\r\nfirst`)
    const text = await received
    assert.match(text, /^HTTP\/1\.1 200 OK[\s\S]*page/)
    assert.match(text, /x:1 first$/)
  })
})

test('an ambiguous head is refused before any handler sees it', async () => {
  const taken: TunnelRequest[] = []
  await serving({ tunnel: (request) => void taken.push(request) }, async ({ port }) => {
    const heads = [
      'CONNECT /x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n',
      'CONNECT a@x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n',
      'CONNECT x HTTP/1.1\r\nHost: x\r\n\r\n',
      'CONNECT x:1 HTTP/1.1\r\n\r\n',
      `${CONNECT}Content-Length: 3\r\n\r\n`,
      `${CONNECT}Transfer-Encoding: chunked\r\n\r\n`,
      `${CONNECT}Proxy-Authorization: Bearer a\r\nProxy-Authorization: Bearer b\r\n\r\n`,
      `${CONNECT}Proxy-Authorization: Bearer \xe9\r\n\r\n`,
    ]
    for (const head of heads) assert.match(await raw(port, head), /^HTTP\/1\.1 400 /, JSON.stringify(head))
    assert.equal(taken.length, 0)
  })
})

test('closing the listener cuts open tunnels and opens no new ones', async () => {
  await serving({ tunnel: echo, api() {} }, async (listener) => {
    const { socket, received } = dial(listener.port)
    socket.write(`${CONNECT}\r\n`)
    await once(socket, 'data')
    const late = dial(listener.port)
    late.socket.write('GET /none HTTP/1.1\r\nHost: localhost\r\n')
    await once(late.socket, 'ready')
    let drained = false
    const draining = listener.drain(300).then(() => {
      drained = true
    })
    late.socket.write('\r\n')
    await late.received
    await received
    await draining
    assert.ok(drained)
  })
})

test('the response of a handler that ends the tunnel arrives although the client keeps sending', async () => {
  const refuse = ({ socket, leave }: TunnelRequest) => {
    socket.write('HTTP/1.1 407 No\r\ncontent-length: 0\r\n\r\n')
    leave()
  }
  await serving({ tunnel: refuse }, async ({ port }) => {
    const { socket, received } = dial(port)
    socket.write(`${CONNECT}\r\n`)
    await once(socket, 'data')
    socket.write(Buffer.alloc(1_000_000))
    await until(() => socket.writableLength === 0, 'the bytes to be taken')
    socket.end()
    assert.match(await received, /^HTTP\/1\.1 407 /)
    assert.equal(socket.errored, null)
  })
})

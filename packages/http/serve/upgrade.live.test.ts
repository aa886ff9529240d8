import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import type { FastifyInstance } from 'fastify'
import type { ListenOptions } from './listen.ts'
import { dial, raw, serving } from './testing/serving.ts'
import { isUpgradable, takeUpgrade } from './upgrade.ts'

const ASKING = 'Host: localhost\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n'
const SWITCHED = 'HTTP/1.1 101 Switching Protocols\r\n\r\n'

/** `/echo` takes the connection if it is offered; `/plain` never does. */
const options: Partial<ListenOptions> = {
  upgrades: ({ url }) => url !== '/never',
  api(app: FastifyInstance) {
    app.get('/echo', (request, reply) => {
      const taken = takeUpgrade(request.raw)
      if (taken === null) return reply.send('not offered')
      reply.hijack()
      assert.equal(takeUpgrade(request.raw), null, 'a connection is taken once')
      taken.socket.write(SWITCHED)
      taken.socket.write(taken.head)
      return taken.socket.pipe(taken.socket)
    })
    app.get('/plain', async ({ raw: request }) => `offered: ${isUpgradable(request)}`)
    app.get('/never', async ({ raw: request }) => `offered: ${isUpgradable(request)}`)
  },
}

test('a route takes the connection with the bytes behind the head, also after earlier requests', async () => {
  await serving(options, async ({ port }) => {
    const { socket, received } = dial(port)
    socket.write('GET /plain HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await once(socket, 'data')
    socket.write(`GET /echo HTTP/1.1\r\n${ASKING}\r\nfirst `)
    await once(socket, 'data')
    socket.end('second')
    assert.match(await received, /offered: false[\s\S]*101 Switching Protocols\r\n\r\nfirst second$/)
  })
})

test('a route that takes no connection answers, and the connection ends', async () => {
  await serving(options, async ({ port }) => {
    const text = await raw(port, `GET /plain HTTP/1.1\r\n${ASKING}\r\nGET /plain HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    assert.match(text, /^HTTP\/1\.1 200 OK[\s\S]*connection: close[\s\S]*offered: true$/i)
    assert.equal(text.split('HTTP/1.1').length, 2, 'bytes behind an upgrade are no second request')
    assert.match(text, /x-plat-request-id: /)
    assert.match(await raw(port, `GET /none HTTP/1.1\r\n${ASKING}\r\n`), /^HTTP\/1\.1 404 /)
  })
})

test('a request that is no WebSocket, or of a path that is not offered, is a plain request', async () => {
  await serving(options, async ({ port }) => {
    const plain = [
      `GET /never HTTP/1.1\r\n${ASKING}`,
      `GET /plain HTTP/1.1\r\n${ASKING.replace('websocket', 'h2c')}`,
      `GET /plain HTTP/1.1\r\n${ASKING.replace(', Upgrade', '')}`,
      `GET /plain HTTP/1.1\r\n${ASKING}Content-Length: 1\r\n`,
    ]
    for (const head of plain) {
      const { socket, received } = dial(port)
      socket.end(`${head}\r\n${head.includes('Content-Length') ? 'x' : ''}`)
      assert.match(await received, /^HTTP\/1\.1 200 OK[\s\S]*offered: false$/, head)
    }
  })
})

test('a head that is refused is refused before any route sees it', async () => {
  await serving({ ...options, origins: new Set(['https://console.example']) }, async ({ port }) => {
    const get = (more: string) => raw(port, `GET /echo HTTP/1.1\r\n${ASKING}${more}\r\n`)
    assert.match(await get('Origin: https://evil.example\r\n'), /^HTTP\/1\.1 403 /)
    assert.match(await get('Host: other\r\n'), /^HTTP\/1\.1 400 /)
    assert.match(await raw(port, `GET /echo HTTP/1.1\r\n${ASKING.replace('localhost', 'evil.example')}\r\n`), / 403 /)
  })
})

test('a connection that was taken ends with its listener', async () => {
  await serving(options, async (listener) => {
    const { socket, received } = dial(listener.port)
    socket.write(`GET /echo HTTP/1.1\r\n${ASKING}\r\n`)
    await once(socket, 'data')
    await listener.close()
    assert.equal(await received, SWITCHED)
  })
})

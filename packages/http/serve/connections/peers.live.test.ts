import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import type { PoolBound } from '@plat/core'
import { until } from '@plat/testkit/until'
import type { ListenOptions } from '../listen.ts'
import { serving } from '../testing/serving.ts'

/** Connections allowed per peer in these tests. */
const SHARE = 3
/** Connections allowed in total in these tests. */
const TOTAL = 8

const api: ListenOptions['api'] = (app) => {
  app.get('/hello', async () => ({ hello: true }))
}

/** Sends a request from a local address; resolves with the first bytes, or '' when the connection is closed instead. */
async function helloFrom(port: number, localAddress: string): Promise<{ socket: Socket; text: string }> {
  const socket = connect({ port, host: '127.0.0.1', localAddress })
  socket.on('error', () => {})
  socket.write('GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n')
  const text = await Promise.race([
    once(socket, 'data').then(([bytes]) => String(bytes)),
    new Promise<string>((resolve) => socket.once('close', () => resolve(''))),
  ]).catch(() => '')
  return { socket, text }
}

async function exhaust(port: number, localAddress: string, count: number): Promise<Socket[]> {
  const sockets: Socket[] = []
  for (let n = 0; n < count; n++) {
    const { socket, text } = await helloFrom(port, localAddress)
    assert.match(text, /^HTTP\/1\.1 200/)
    sockets.push(socket)
  }
  return sockets
}

test('a peer at its connection limit gets no more connections, while another peer is served', async () => {
  const refused: PoolBound[] = []
  let open = () => 0
  const meter = {
    refused: (bound: PoolBound) => void refused.push(bound),
    watch(used: () => number) {
      open = used
    },
  }
  const limits = { maxConnections: TOTAL, maxConnectionsPerPeer: SHARE }
  await serving({ api, limits, meter }, async ({ port }) => {
    const sockets = await exhaust(port, '127.0.0.1', SHARE)
    assert.equal((await helloFrom(port, '127.0.0.1')).text, '')
    assert.deepEqual(refused, ['share'])
    assert.equal(open(), SHARE)
    sockets.push(...(await exhaust(port, '127.0.0.2', 1)))
    sockets[0]?.destroy()
    await until(() => open() === SHARE, 'the closed connection')
    sockets.push(...(await exhaust(port, '127.0.0.1', 1)))
    for (const socket of sockets) socket.destroy()
    await until(() => open() === 0, 'the end of all connections')
  })
})

test('a trusted proxy has no per-peer limit, since many clients share its address', async () => {
  const refused: PoolBound[] = []
  const meter = { refused: (bound: PoolBound) => void refused.push(bound), watch() {} }
  const limits = { maxConnections: TOTAL, maxConnectionsPerPeer: SHARE }
  await serving({ api, limits, meter, trustedProxies: ['127.0.0.9/32'] }, async ({ port }) => {
    const sockets = await exhaust(port, '127.0.0.9', TOTAL)
    assert.equal((await helloFrom(port, '127.0.0.2')).text, '')
    assert.deepEqual(refused, ['total'])
    for (const socket of sockets) socket.destroy()
  })
})

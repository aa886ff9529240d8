import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { systemClock as clock, systemIds } from '@plat/core'
import { silentLog } from '@plat/process'
import { until } from '@plat/testkit/until'
import { readBody } from './body.ts'
import { listen } from './listen.ts'

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

const CONNECTIONS = 80
/** Below the number of chunks at which a body is refused. */
const CHUNKS = 8000
const MAX_HELD_BYTES = 64 * 1024 * 1024
const ONE_BYTE = '1\r\na\r\n'

let bodies = 0
const listener = await listen({
  address: '127.0.0.1:0',
  clock,
  ids: systemIds(clock),
  log: silentLog,
  raw: [
    {
      prefix: '/raw/',
      handle: ({ request, response }) => {
        bodies++
        void readBody(request, { maxBytes: 1_000_000, timeoutMs: 60_000, clock }).then((body) =>
          response.end('kind' in body ? body.why : 'read'),
        )
      },
    },
  ],
  api: (app) => {
    app.post('/api', async () => ({}))
  },
})
after(() => listener.close())

function send(path: string): Socket {
  const socket = connect(listener.port, '127.0.0.1')
  socket.on('error', () => {})
  socket.write(
    `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`,
  )
  return socket
}

function heldBytes(): number {
  collectGarbage()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

test('80 connections that send one-byte chunks hold at most 64 MiB', async () => {
  for (const path of ['/raw/x', '/api']) {
    const before = heldBytes()
    bodies = 0
    const sockets = Array.from({ length: CONNECTIONS }, () => send(path))
    for (const socket of sockets) socket.write(ONE_BYTE.repeat(CHUNKS))
    const sent = () => sockets.every((socket) => socket.writableLength === 0)
    await until(() => sent() && (path === '/api' || bodies === CONNECTIONS), 'all chunks')
    // One more round trip ensures that everything sent before has been read.
    await fetch(`${listener.url}/none`)
    assert.ok(heldBytes() - before < MAX_HELD_BYTES / 4, path)
    for (const socket of sockets) socket.destroy()
  }
})

test('a body of very many chunks is refused with 400, on API routes and by raw readers', async () => {
  for (const [path, expected] of [
    ['/api', /^HTTP\/1\.1 400 .*too many small chunks/s],
    ['/raw/x', /^HTTP\/1\.1 200 .*chunks/s],
  ] as const) {
    const socket = send(path)
    socket.write(ONE_BYTE.repeat(20_000))
    let answer = ''
    socket.on('data', (bytes) => {
      answer += bytes.toString('latin1')
    })
    await until(() => expected.test(answer), `an answer of ${path}`)
    socket.destroy()
  }
})

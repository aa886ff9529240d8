import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { systemClock, systemIds } from '@plat/core'
import { createAddressCheck, type Listener, listen, parseAddress, readBody } from '@plat/http'
import { silentLog } from '@plat/process'
import fc from 'fast-check'
import { type FuzzTarget, fuzzTarget, near } from './target.ts'

/** Statuses that the listener and the two routes below may answer with. Anything else is undocumented. */
const DOCUMENTED = new Set(['100', '200', '400', '403', '404', '405', '408', '413', '415', '431', '501'])

/** Milliseconds until a connection on which nothing more can come must be closed, on the slowest machine. */
const CLOSED_MS = 60_000

const requests = near([
  'GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n',
  'POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n{"a":1}',
  'POST /raw/x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n',
  'POST /raw/x HTTP/1.1\r\nHost: 127.0.0.1:80\r\nTransfer-Encoding: ,chunked\r\nContent-Length: 4\r\n\r\n',
  'CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n',
  'GET http://localhost/ HTTP/1.0\r\nAuthorization: Bearer a\r\nAuthorization: b\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n',
])

const addresses = near([
  '127.0.0.1',
  '169.254.169.254',
  '::ffff:169.254.169.254',
  '64:ff9b::a9fe:a9fe',
  '[::1]:8080',
  ':80',
])

/** The listener takes any bytes: it answers what is documented, or nothing, and stays. */
export const target: FuzzTarget = {
  name: 'http',
  async run(seconds, seed) {
    const listener = await start()
    try {
      return await fuzzTarget('http', {
        'any bytes get a documented answer': fc.asyncProperty(requests, (text) => answers(listener.port, text)),
        'no text passes the address check that hides a metadata address': fc.property(addresses, noWayToMetadata),
        'a listen address is read or refused': fc.property(addresses, (text) => {
          const address = parseAddress(text)
          assert.ok(address === null || (address.port >= 0 && address.port <= 65_535))
        }),
      }).run(seconds, seed)
    } finally {
      await listener.close()
    }
  },
}

function start(): Promise<Listener> {
  const clock = systemClock
  return listen({
    address: '127.0.0.1:0',
    clock,
    ids: systemIds(clock),
    log: silentLog,
    limits: { headersMs: 200, requestMs: 300, checkEveryMs: 50, lingerMs: 50, maxBodyBytes: 1024 },
    raw: [
      {
        prefix: '/raw/',
        handle: ({ request, response }) => {
          readBody(request, { maxBytes: 64, timeoutMs: 100, clock }).then((body) =>
            response.end(body instanceof Uint8Array ? 'read' : body.why),
          )
        },
      },
    ],
    api: (app) => {
      app.get('/hello', async () => ({ hello: true }))
      app.post('/echo', async (request) => ({ got: request.body }))
    },
  })
}

async function answers(port: number, text: string): Promise<void> {
  const answer = await exchange(port, text)
  for (const [, status] of answer.matchAll(/^HTTP\/1\.1 (\d{3}) /gm)) assert.ok(DOCUMENTED.has(status ?? ''), answer)
}

function exchange(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    let answer = ''
    const late = setTimeout(() => {
      socket.destroy()
      reject(new Error(`the connection stays open after ${JSON.stringify(answer)}`))
    }, CLOSED_MS)
    socket.on('data', (chunk) => {
      answer += chunk.toString('latin1')
    })
    socket.on('error', () => {})
    socket.on('close', () => {
      clearTimeout(late)
      resolve(answer)
    })
    socket.end(Buffer.from(text, 'latin1'))
  })
}

const check = createAddressCheck([])

function noWayToMetadata(text: string): void {
  const passes = check(text, 'configured')
  assert.equal(typeof passes, 'boolean')
  // Addresses allowed for the web are allowed for configured targets too, but not the reverse.
  if (check(text, 'public')) assert.ok(passes)
  if (/^(?:::ffff:)?169\.254\.\d+\.\d+$/.test(text)) assert.equal(passes, false)
}

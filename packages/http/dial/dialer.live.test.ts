import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createSocketServer } from 'node:net'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { silentLog } from '@plat/process'
import { listening } from '@plat/testkit/local'
import { createDialer, type Dialer, type DialerOptions } from './dialer.ts'
import { dialFault } from './errors.ts'
import type { FetchedHead } from './fetch-bytes.ts'

/** Runs a test with a server on 127.0.0.1 and a dialer. */
async function meeting(
  listener: RequestListener,
  options: Partial<DialerOptions>,
  use: (dialer: Dialer, port: number, connections: () => number) => Promise<void>,
): Promise<void> {
  const server = createServer(listener)
  let connections = 0
  server.on('connection', () => connections++)
  const port = await listening(server)
  const dialer = createDialer({ log: silentLog, ...options })
  try {
    await use(dialer, port, () => connections)
  } finally {
    await dialer.close()
    server.close()
    server.closeAllConnections()
  }
}

const at = (address: string) => ({ address, family: address.includes(':') ? 6 : 4 })

const limits = { maxBytes: 1000, timeoutMs: 60_000 }

test('a name is resolved once, and the connection uses the checked address with the name as Host', async () => {
  let lookups = 0
  const lookup = async () => {
    lookups++
    return [at('127.0.0.1')]
  }
  await meeting(
    (request, response) => response.end(request.headers.host),
    { lookup },
    async (dialer, port) => {
      const { status, bytes } = await dialer.fetchBytes(`http://tools.example:${port}/x?y=1`, 'jwks', limits)
      assert.equal(status, 200)
      assert.equal(Buffer.from(bytes).toString(), `tools.example:${port}`)
      assert.equal(lookups, 1)
    },
  )
})

test('a name that changes to a forbidden address after the check is never connected to', async () => {
  const answers = ['127.0.0.2', '127.0.0.1']
  let lookups = 0
  const lookup = async () => [at(answers[Math.min(lookups++, 1)] ?? '')]
  const options = { lookup, allowedCIDRs: ['127.0.0.2/32'] }
  await meeting(
    (_request, response) => response.end('inside'),
    options,
    async (dialer, port, connections) => {
      const fetched = () => dialer.fetchBytes(`http://flip.example:${port}/`, 'web', limits)
      // The first resolution is allowed, and only it is used: no server listens at that address.
      assert.equal(await fetched().catch(dialFault), 'refused')
      assert.equal(lookups, 1)
      // The second resolution, of a new connection, is forbidden.
      await assert.rejects(fetched(), { name: 'BlockedAddressError', address: '127.0.0.1' })
      assert.equal(connections(), 0)
    },
  )
})

test('one forbidden address among several blocks the whole name', async () => {
  const lookup = async () => [at('93.184.215.14'), at('::ffff:127.0.0.1')]
  await meeting(
    (_request, response) => response.end(),
    { lookup },
    async (dialer, port, connections) => {
      const error = await dialer
        .fetchBytes(`http://mixed.example:${port}/`, 'web', limits)
        .catch((reason: unknown) => reason)
      assert.equal(dialFault(error), 'blocked')
      assert.equal(connections(), 0)
    },
  )
})

test('an address in the URL is checked in every spelling, by purpose', async () => {
  await meeting(
    (_request, response) => response.end('here'),
    {},
    async (dialer, port, connections) => {
      const spellings = [
        '127.0.0.1',
        '127.1',
        '0x7f.0.0.1',
        '017700000001',
        '2130706433',
        '127。0。0。1',
        '[::ffff:127.0.0.1]',
        '[::ffff:7f00:1]',
        'localhost',
      ]
      for (const host of spellings) {
        await assert.rejects(
          dialer.fetchBytes(`http://${host}:${port}/`, 'web', limits),
          { name: 'BlockedAddressError' },
          host,
        )
      }
      assert.equal(connections(), 0)
      assert.equal((await dialer.fetchBytes(`http://2130706433:${port}/`, 'mcp', limits)).status, 200)
      await assert.rejects(dialer.fetchBytes('http://169.254.169.254/latest/meta-data', 'mcp', limits), {
        name: 'BlockedAddressError',
      })
      await assert.rejects(dialer.fetchBytes('http://[fd00:ec2::254]/', 'model', limits), {
        name: 'BlockedAddressError',
      })
    },
  )
})

test('an allowed range is an exception from the policy', async () => {
  await meeting(
    (_request, response) => response.end('here'),
    { allowedCIDRs: ['127.0.0.0/8'] },
    async (dialer, port) => {
      assert.equal((await dialer.fetchBytes(`http://127.0.0.1:${port}/`, 'web', limits)).status, 200)
    },
  )
})

test('a redirect is returned and not followed', async () => {
  const paths: (string | undefined)[] = []
  const redirect: RequestListener = (request, response) => {
    paths.push(request.url)
    response.writeHead(302, { location: '/secret' }).end()
  }
  await meeting(redirect, {}, async (dialer, port) => {
    const { status, headers } = await dialer.fetchBytes(`http://127.0.0.1:${port}/a`, 'jwks', limits)
    assert.deepEqual([status, headers.location], [302, '/secret'])
    assert.deepEqual(paths, ['/a'])
  })
})

test('a response of exactly the limit is accepted, a longer one is cut off', async () => {
  await meeting(
    (request, response) => response.end('x'.repeat(Number(request.url?.slice(1)))),
    {},
    async (dialer, port) => {
      const { bytes } = await dialer.fetchBytes(`http://127.0.0.1:${port}/1000`, 'jwks', limits)
      assert.equal(bytes.length, 1000)
      const error = await dialer
        .fetchBytes(`http://127.0.0.1:${port}/1001`, 'jwks', limits)
        .catch((reason: unknown) => reason)
      assert.equal(dialFault(error), 'too_large')
    },
  )
})

test('an unwanted body is not read, and an aborted request ends', async () => {
  const endless = (request: IncomingMessage, response: ServerResponse) => {
    if (request.url !== '/silent') response.writeHead(404, { 'x-word': 'no' }).write('and so on')
  }
  await meeting(endless, {}, async (dialer, port, connections) => {
    const wants = ({ status }: FetchedHead) => status < 400
    const unread = await dialer.fetchBytes(`http://127.0.0.1:${port}/`, 'jwks', { ...limits, wants })
    assert.deepEqual([unread.status, unread.headers['x-word'], unread.bytes.length], [404, 'no', 0])
    const stop = new AbortController()
    const { signal } = stop
    const ask = () => dialer.fetchBytes(`http://127.0.0.1:${port}/silent`, 'jwks', { ...limits, signal })
    const stopped = ask().then(() => 'none', dialFault)
    while (connections() < 2) await new Promise((resolve) => setImmediate(resolve))
    stop.abort()
    assert.equal(await stopped, 'aborted')
    assert.equal(await ask().then(() => 'none', dialFault), 'aborted')
  })
})

test('silence, a closed port, an unknown name and a server without HTTP are distinct faults', async () => {
  const clock = new TestClock()
  const lookup = async (name: string) => {
    if (name === 'unknown.example') throw Object.assign(new Error('no such name'), { code: 'ENOTFOUND' })
    return [at('127.0.0.1')]
  }
  const babbler = createSocketServer((socket) => socket.resume().end('hello there\r\n\r\n'))
  const babblerPort = await listening(babbler)
  await meeting(
    () => {},
    { clock, lookup },
    async (dialer, port, connections) => {
      const faultOf = (url: string) => dialer.fetchBytes(url, 'jwks', limits).then(() => 'none', dialFault)
      const silent = faultOf(`http://127.0.0.1:${port}/`)
      while (connections() === 0) await new Promise((resolve) => setImmediate(resolve))
      await clock.advance(limits.timeoutMs)
      assert.equal(await silent, 'timeout')
      assert.equal(await faultOf('http://unknown.example/'), 'name')
      assert.equal(await faultOf(`http://127.0.0.1:${babblerPort}/`), 'lost')
      babbler.close()
      await once(babbler, 'close')
      assert.equal(await faultOf(`http://closed.example:${babblerPort}/`), 'refused')
    },
  )
})

test('one origin and purpose share a client for all spellings of the URL; purposes and CAs do not', () => {
  const dialer = createDialer({ log: silentLog })
  const client = dialer.client('http://tools.example', 'mcp')
  assert.equal(dialer.client('http://TOOLS.example:80/deep?x', 'mcp'), client)
  assert.equal(dialer.client(new URL('http://tools.example/other'), 'mcp'), client)
  assert.notEqual(dialer.client('http://tools.example', 'web'), client)
  assert.notEqual(
    dialer.client('http://tools.example', 'mcp', { caPEM: 'a' }),
    dialer.client('http://tools.example', 'mcp', { caPEM: 'b' }),
  )
  assert.throws(() => dialer.client('ftp://tools.example', 'mcp'), /"ftp:" cannot be dialled/)
  assert.throws(() => dialer.client('http://user:secret@tools.example', 'mcp'), /must not carry credentials/)
  dialer.close()
  assert.throws(() => dialer.client('http://tools.example', 'mcp', { caPEM: 'c' }), /closed/)
})

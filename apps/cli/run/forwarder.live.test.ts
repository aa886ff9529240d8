import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, request } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import tls from 'node:tls'
import { createAuthority } from '@plat/testkit/authority'
import { closed, freePort, listening } from '@plat/testkit/local'
import { startForwarder } from './forwarder.ts'

/** Path and Authorization of each received request. */
interface Received {
  readonly requests: { readonly path: string | undefined; readonly authorization: string | undefined }[]
  readonly listener: RequestListener
}

function recorder(): Received {
  const requests: Received['requests'] = []
  return {
    requests,
    listener: (incoming, response) => {
      requests.push({ path: incoming.url, authorization: incoming.headers.authorization })
      response.end('ok')
    },
  }
}

async function plainServer(t: TestContext): Promise<Received & { readonly port: number }> {
  const received = recorder()
  const server = createServer(received.listener)
  const port = await listening(server)
  t.after(() => closed(server))
  return { ...received, port }
}

async function forwarderTo(
  t: TestContext,
  gatewayURL: string,
  restartMs = 5000,
): Promise<(path: string) => Promise<number>> {
  const forwarder = await startForwarder({ gatewayURL, secret: 'secret', token: () => 'the-token', restartMs })
  t.after(() => forwarder.close())
  const { port } = new URL(forwarder.url)
  return (path) =>
    new Promise((resolve, reject) => {
      const sent = request({
        port,
        host: '127.0.0.1',
        path: `/secret${path}`,
        headers: { authorization: 'Bearer own' },
      })
      sent.once('error', reject).once('response', (response: IncomingMessage) => {
        response.resume().once('end', () => resolve(response.statusCode ?? 0))
      })
      sent.end()
    })
}

test('a path that a URL parser reads as another host goes to the gateway, and the token with it', async (t) => {
  const gateway = await plainServer(t)
  const stranger = await plainServer(t)
  const get = await forwarderTo(t, `http://127.0.0.1:${gateway.port}`)
  const host = `127.0.0.1:${stranger.port}`
  const paths = [`//${host}/x`, `/\\${host}/x`, `/%2f/${host}/x`, `//user@${host}/x`, `/../..//${host}/x`]
  for (const path of paths) assert.equal(await get(path), 200, path)
  assert.deepEqual(stranger.requests, [])
  assert.deepEqual(
    gateway.requests,
    paths.map((path) => ({ path, authorization: 'Bearer the-token' })),
  )
})

test('a gateway with https is reached over TLS', async (t) => {
  const authority = await createAuthority({ name: 'root', now: Date.now() })
  const leaf = await authority.issue({ name: 'localhost', dnsNames: ['localhost'] })
  const received = recorder()
  const key = leaf.privateKey.export({ type: 'pkcs8', format: 'pem' })
  const server = createTlsServer({ cert: leaf.pem, key }, received.listener)
  const port = await listening(server)
  t.after(() => closed(server))
  const trusted = tls.getCACertificates('default')
  t.after(() => tls.setDefaultCACertificates(trusted))
  tls.setDefaultCACertificates([authority.pem])
  const get = await forwarderTo(t, `https://localhost:${port}`)
  assert.equal(await get('/mcp/notes'), 200)
  assert.deepEqual(received.requests, [{ path: '/mcp/notes', authorization: 'Bearer the-token' }])
})

test('a response that comes before the whole body is sent reaches a program that sends first and reads later', async (t) => {
  const server = createServer((incoming, response) => {
    response.writeHead(413).end('too large')
    incoming.resume()
  })
  const port = await listening(server)
  t.after(() => closed(server))
  const forwarder = await startForwarder({ gatewayURL: `http://127.0.0.1:${port}`, secret: 's', token: () => 'x' })
  t.after(() => forwarder.close())
  const socket = connect(Number(new URL(forwarder.url).port), '127.0.0.1')
  t.after(() => socket.destroy())
  const body = Buffer.alloc(8 * 1024 * 1024, 'a')
  const head = `POST /s/mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: ${body.length}\r\n\r\n`
  for (let request = 0; request < 2; request++) {
    socket.write(head)
    await new Promise<void>((resolve, reject) => socket.write(body, (error) => (error ? reject(error) : resolve())))
    await once(socket, 'readable')
    assert.match(String(socket.read()), /^HTTP\/1\.1 413 /)
  }
})

test('a request while the gateway starts again is sent whole when it is back, once', async (t) => {
  const port = await freePort()
  const forwarder = await startForwarder({
    gatewayURL: `http://127.0.0.1:${port}`,
    secret: 'secret',
    token: () => 'the-token',
  })
  t.after(() => forwarder.close())
  const body = 'x'.repeat(1_000_000)
  const response = fetch(`${forwarder.url}/mcp/notes`, { method: 'POST', body })
  const left = fetch(`${forwarder.url}/left`, { method: 'POST', body: 'y', signal: AbortSignal.timeout(50) })
  await assert.rejects(left, /TimeoutError|aborted/)
  // The forwarder sees that the program left before it responds to later requests.
  for (let times = 0; times < 3; times++) assert.equal((await fetch(new URL('/other', forwarder.url))).status, 404)
  const received: string[] = []
  const gateway = createServer(async (incoming, outgoing) => {
    let text = ''
    for await (const chunk of incoming) text += String(chunk)
    received.push(`${incoming.url} ${text.length}`)
    outgoing.end('done')
  })
  await listening(gateway, '127.0.0.1', port)
  t.after(() => closed(gateway))
  assert.equal(await (await response).text(), 'done')
  assert.deepEqual(received, ['/mcp/notes 1000000'])
})

test('a gateway that cannot be reached gives 502, and the forwarder goes on', async (t) => {
  const get = await forwarderTo(t, 'https://127.0.0.1:1', 300)
  assert.equal(await get('/mcp/notes'), 502)
  assert.equal(await get('/mcp/notes'), 502)
})

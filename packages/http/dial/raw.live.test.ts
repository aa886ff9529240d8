import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { createServer as createTlsServer } from 'node:tls'
import { silentLog } from '@plat/process'
import { createAuthority } from '@plat/testkit/authority'
import { listening } from '@plat/testkit/local'
import { createDialer, type DialerOptions } from './dialer.ts'
import { dialFault } from './errors.ts'
import type { TrustOptions } from './trust.ts'

async function served(t: TestContext, server: Server): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => sockets.add(socket))
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return await listening(server)
}

function dialerOf(t: TestContext, options: Partial<DialerOptions> = {}) {
  const dialer = createDialer({ log: silentLog, ...options })
  t.after(() => dialer.close())
  return dialer
}

const patient = { timeoutMs: 60_000 }

/** Resolves with everything received until the other side ends. */
async function received(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(Buffer.from(chunk)))
  await once(socket, 'end')
  return Buffer.concat(chunks)
}

const echo = async (socket: Socket) => void socket.end(await received(socket))

async function exchanged(socket: Socket, text: string): Promise<string> {
  socket.end(text)
  return String(await received(socket))
}

test('a connection without HTTP stays readable after its write side was closed', async (t) => {
  const port = await served(
    t,
    createServer({ allowHalfOpen: true }, (socket) => void echo(socket)),
  )
  const socket = await dialerOf(t).connect(new URL(`tcp://127.0.0.1:${port}`), 'sink', patient)
  assert.equal(await exchanged(socket, 'heard'), 'heard')
})

test('over TLS the certificate is checked for the configured name, and the client certificate is sent', async (t) => {
  const authority = await createAuthority({ name: 'root', now: Date.now() })
  const leaf = await authority.issue({ name: 'siem', dnsNames: ['siem.example'] })
  const client = await authority.issue({ name: 'plat' })
  const keyOf = ({ privateKey }: typeof leaf) => String(privateKey.export({ type: 'pkcs8', format: 'pem' }))
  const server = createTlsServer(
    { cert: leaf.pem, key: keyOf(leaf), ca: authority.pem, requestCert: true, allowHalfOpen: true },
    (socket) => void echo(socket),
  )
  const port = await served(t, server)
  const dialer = dialerOf(t)
  const target = new URL(`tls://127.0.0.1:${port}`)
  const trust = { ...patient, caPEM: authority.pem, clientCert: { certPEM: client.pem, keyPEM: keyOf(client) } }
  const socket = await dialer.connect(target, 'sink', { ...trust, serverName: 'siem.example' })
  assert.equal(await exchanged(socket, 'heard'), 'heard')
  const faultOf = (options: TrustOptions & typeof patient) => dialer.connect(target, 'sink', options).catch(dialFault)
  assert.equal(await faultOf({ ...trust, serverName: 'other.example' }), 'tls')
  assert.equal(await faultOf(trust), 'tls')
  const { caPEM: _, ...stranger } = trust
  assert.equal(await faultOf({ ...stranger, serverName: 'siem.example' }), 'tls')
})

test('a forbidden address is refused, as a literal and behind a name', async (t) => {
  const dialer = dialerOf(t, { lookup: async () => [{ address: '169.254.169.254', family: 4 }] })
  for (const target of ['tcp://169.254.169.254:514', 'tls://[fe80::1]:6514', 'tcp://siem.example:514']) {
    assert.equal(await dialer.connect(new URL(target), 'sink', patient).catch(dialFault), 'blocked', target)
  }
  const elsewhere = { ...patient, residency: { mark: 'eu', admits: () => false } }
  assert.equal(await dialer.connect(new URL('tcp://127.0.0.1:9'), 'sink', elsewhere).catch(dialFault), 'residency')
})

test('a connection that is not ready in time fails, and closing the dialer destroys open ones', async (t) => {
  const port = await served(t, createServer())
  const dialer = dialerOf(t)
  // Accepts the connection, but never starts TLS.
  const silent = dialer.connect(new URL(`tls://127.0.0.1:${port}`), 'sink', { timeoutMs: 30 })
  assert.equal(await silent.catch(dialFault), 'timeout')
  const socket = await dialer.connect(new URL(`tcp://127.0.0.1:${port}`), 'sink', patient)
  const closed = once(socket, 'close')
  dialer.close()
  await closed
  await assert.rejects(dialer.connect(new URL(`tcp://127.0.0.1:${port}`), 'sink', patient), /closed/)
})

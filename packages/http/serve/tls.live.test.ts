import assert from 'node:assert/strict'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import { connect as connectPlain } from 'node:net'
import path from 'node:path'
import { test } from 'node:test'
import { type ConnectionOptions, connect, TLSSocket } from 'node:tls'
import { systemClock, systemIds, TestClock } from '@plat/core'
import { type Log, silentLog } from '@plat/process'
import { createAuthority, type Issued } from '@plat/testkit/authority'
import { tempFolder } from '@plat/testkit/local'
import { type ListenOptions, listen } from './listen.ts'

const RELOAD_MS = 1000

async function setUp(options: Partial<ListenOptions> = {}) {
  const dir = tempFolder()
  const root = await createAuthority({ name: 'root', now: systemClock.now() })
  const [certFile, keyFile] = [path.join(dir, 'tls.crt'), path.join(dir, 'tls.key')]
  const writeCert = ({ pem }: Issued) => fs.writeFile(certFile, pem)
  const writeKey = ({ privateKey }: Issued) =>
    fs.writeFile(keyFile, privateKey.export({ format: 'pem', type: 'pkcs8' }))
  const serverOf = (name: string) => root.issue({ name, dnsNames: ['localhost'] })
  const first = await serverOf('first')
  await writeCert(first)
  await writeKey(first)
  const clock = new TestClock()
  const warnings: string[] = []
  const warn = (fields: object) => void warnings.push(JSON.stringify(fields))
  const log: Log = { ...silentLog, warn, error: warn, child: () => log }
  const start = () =>
    listen({
      address: '127.0.0.1:0',
      clock,
      ids: systemIds(systemClock),
      log,
      tls: { certFile, keyFile, clientCertificates: 'requested', reloadMs: RELOAD_MS },
      ...options,
    })
  return { root, certFile, keyFile, writeCert, writeKey, serverOf, clock, warnings, start }
}

/** Sends a request over a new connection; returns the response and the name in the server's certificate. */
async function get(port: number, ca: Issued, options: ConnectionOptions = {}) {
  const socket = connect({ port, host: '127.0.0.1', servername: 'localhost', ca: ca.pem, ...options })
  let session: Buffer | undefined
  socket.on('session', (bytes) => {
    session = bytes
  })
  await once(socket, 'secureConnect')
  const server = socket.getPeerCertificate().subject.CN
  const resumed = socket.isSessionReused()
  socket.write('GET /who HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n')
  let answer = ''
  socket.on('data', (chunk) => {
    answer += chunk.toString('latin1')
  })
  await once(socket, 'close')
  return { server, resumed, session, answer }
}

const whoAsks: ListenOptions['api'] = (app) => {
  app.get('/who', async ({ raw: { socket } }) => {
    const leaf = socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined
    return { client: leaf?.subject ?? null }
  })
}

test('a new certificate is served to new connections once its key is present, and open connections continue', async (t) => {
  // Shows D1.flag.tls-cert, D1.flag.tls-key.
  const { root, writeCert, writeKey, serverOf, clock, warnings, start } = await setUp({ api: whoAsks })
  const listener = await start()
  t.after(() => listener.close())
  assert.match(listener.url, /^https:\/\/127\.0\.0\.1:\d+$/)
  assert.equal((await get(listener.port, root)).server, 'first')
  const open = connect({ port: listener.port, host: '127.0.0.1', servername: 'localhost', ca: root.pem })
  await once(open, 'secureConnect')
  const second = await serverOf('second')
  await writeCert(second)
  while (warnings.length === 0) await clock.advance(RELOAD_MS).then(breathe)
  assert.match(warnings[0] ?? '', /not a certificate with its key in PEM/)
  assert.equal((await get(listener.port, root)).server, 'first', 'a certificate without its key changes nothing')
  await writeKey(second)
  let served = 'first'
  while (served === 'first') {
    await clock.advance(RELOAD_MS).then(breathe)
    served = String((await get(listener.port, root)).server)
  }
  assert.equal(served, 'second')
  open.write('GET /who HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n')
  const [answer] = await once(open, 'data')
  assert.match(String(answer), /^HTTP\/1\.1 200 /)
})

test('a client certificate of any issuer reaches the handler, on every connection', async (t) => {
  const { root, start } = await setUp({ api: whoAsks })
  const listener = await start()
  t.after(() => listener.close())
  const theirs = await createAuthority({ name: 'theirs', now: systemClock.now() })
  const svid = await theirs.issue({ name: 'svid', uris: ['spiffe://plat.local/ns/default'] })
  const key = svid.privateKey.export({ format: 'pem', type: 'pkcs8' })
  const first = await get(listener.port, root, { cert: svid.pem, key })
  assert.match(first.answer, /"client":"CN=svid"/)
  assert.match((await get(listener.port, root)).answer, /"client":null/)
  const again = await get(listener.port, root, first.session === undefined ? {} : { session: first.session })
  assert.deepEqual([again.resumed, /"client":null/.test(again.answer)], [false, true])
})

test('an unusable certificate or key prevents the start, and the error names the files without key material', async () => {
  const { keyFile, certFile, serverOf, writeKey, start } = await setUp()
  await writeKey(await serverOf('other'))
  await assert.rejects(start(), (error) => {
    assert.ok(error instanceof Error)
    assert.match(error.message, /tls\.crt and .*tls\.key are not a certificate with its key in PEM/)
    return !error.message.includes('BEGIN')
  })
  await fs.rm(keyFile)
  await assert.rejects(start(), /tls\.key cannot be read/)
  await fs.rm(certFile)
  await assert.rejects(start(), /tls\.crt cannot be read/)
})

test('plain HTTP and old TLS versions get no response, and the listener keeps running', async (t) => {
  const { root, start } = await setUp({ api: whoAsks })
  const listener = await start()
  t.after(() => listener.close())
  const plain = connectPlain(listener.port, '127.0.0.1', () => plain.write('GET /who HTTP/1.1\r\nhost: x\r\n\r\n'))
  let bytes = ''
  plain.on('data', (chunk) => {
    bytes += chunk.toString('latin1')
  })
  plain.on('error', () => {})
  await once(plain, 'close')
  assert.doesNotMatch(bytes, /HTTP/)
  await assert.rejects(get(listener.port, root, { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1' }))
  assert.match((await get(listener.port, root)).answer, /^HTTP\/1\.1 200 /)
})

function breathe(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 5))
}

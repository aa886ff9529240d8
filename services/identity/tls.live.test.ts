import assert from 'node:assert/strict'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { type RequestOptions, request } from 'node:https'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemClock } from '@plat/core'
import { createAuthority, type Issued } from '@plat/testkit/authority'
import { testProver } from '@plat/testkit/dpop'
import { tempFolder } from '@plat/testkit/local'
import { spiffeCheck } from './proof/spiffe.ts'
import { jwkOf } from './proof/testing/jwt.ts'
import { testParts } from './proof/testing/suite.ts'
import { BROKER_TOKEN, base, jsonFile, startTestBroker, text } from './testing/broker.ts'

const ID = 'spiffe://mesh.example/ns/default/sa/runner'

/** A broker over TLS that trusts one SPIFFE domain, and requests with or without a client certificate. */
async function setUp(t: TestContext) {
  const web = await createAuthority({ name: 'web', now: systemClock.now() })
  const server = await web.issue({ name: 'broker', dnsNames: ['localhost'] })
  const dir = tempFolder()
  const [tlsCert, tlsKey] = [path.join(dir, 'tls.crt'), path.join(dir, 'tls.key')]
  await fs.writeFile(tlsCert, server.pem)
  await fs.writeFile(tlsKey, keyPem(server))
  const parts = testParts()
  const mesh = await createAuthority({ name: 'mesh', now: parts.clock.now() })
  const entry = { ...jwkOf(mesh.privateKey), use: 'x509-svid', x5c: [mesh.x5c] }
  const bundles = new Map([['mesh.example', await jsonFile({ keys: [entry] })]])
  const check = spiffeCheck({ bundles, audience: 'plat-identity', ids: ['spiffe://*/ns/{namespace}/sa/*'] }, parts)
  const broker = await startTestBroker(t, { tlsCert, tlsKey, checks: [check] })
  const send = (where: string, options: RequestOptions, body: object) =>
    post(broker.identity.port, where, { ca: web.pem, ...options }, body)
  const mint = (proof: object, client: RequestOptions = {}) =>
    send('/v1/token', { ...client, headers: { authorization: `Bearer ${BROKER_TOKEN}` } }, { ...base, proof })
  return { broker, mesh, send, mint }
}

async function post(port: number, where: string, options: RequestOptions, body: object) {
  const headers = { 'content-type': 'application/json', ...options.headers, connection: 'close' }
  const sent = request({
    ...options,
    host: '127.0.0.1',
    servername: 'localhost',
    port,
    path: where,
    method: 'POST',
    headers,
  })
  sent.end(JSON.stringify(body))
  const received: Promise<[IncomingMessage]> = once(sent, 'response').then(([response]) => [response])
  const [response] = await received
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(Buffer.from(chunk))
  return { status: response.statusCode, body: JSON.parse(Buffer.concat(chunks).toString()) }
}

function keyPem({ privateKey }: Issued): string {
  return privateKey.export({ format: 'pem', type: 'pkcs8' }).toString()
}

const asClient = (leaf: Issued): RequestOptions => ({ cert: leaf.pem, key: keyPem(leaf) })

test('an X.509-SVID of the TLS handshake proves where a session runs, and no other certificate does', async (t) => {
  // Shows D1.flag.tls-cert, D1.flag.tls-key, D1.auth.clientSvid.
  const { mesh, mint } = await setUp(t)
  const svid = await mesh.issue({ name: 'runner', uris: [ID] })
  const proven = await mint({ check: 'spiffe' }, asClient(svid))
  assert.equal(proven.status, 200, JSON.stringify(proven.body))
  assert.deepEqual(proven.body.substrate, { check: 'spiffe', attestation: 'x509-svid', workload: ID })
  assert.equal((await mint({ check: 'spiffe' })).status, 403)
  const stranger = await createAuthority({ name: 'mesh', now: systemClock.now() })
  const forged = await stranger.issue({ name: 'runner', uris: [ID] })
  assert.equal((await mint({ check: 'spiffe' }, asClient(forged))).status, 403)
  assert.equal((await mint({ check: 'spiffe', x5c: [svid.x5c] }, asClient(forged))).status, 403)
})

test('over TLS a proof of a key is for the https URL', async (t) => {
  const { broker, send } = await setUp(t)
  const minted = await send('/v1/token', { headers: { authorization: `Bearer ${BROKER_TOKEN}` } }, base)
  const token = text(minted.body.token)
  const bind = (url: string) => {
    const dpop = testProver({ clock: broker.clock }).proof(url, token)
    return send('/v1/token/bind', { headers: { authorization: `Bearer ${token}`, dpop } }, {})
  }
  const { url } = broker.identity
  assert.match(url, /^https:/)
  assert.equal((await bind(`${url.replace('https:', 'http:')}/v1/token/bind`)).status, 400)
  assert.equal((await bind(`${url}/v1/token/bind`)).status, 200)
})

test('a certificate without a key, or files that are none, refuse to start', async (t) => {
  const file = await jsonFile('x')
  await assert.rejects(startTestBroker(t, { tlsCert: file }), /-tls-cert: needs -tls-key/)
  await assert.rejects(startTestBroker(t, { tlsKey: file }), /-tls-key: needs -tls-cert/)
  await assert.rejects(startTestBroker(t, { tlsCert: file, tlsKey: file }), /are not a certificate with its key in PEM/)
})

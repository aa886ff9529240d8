import assert from 'node:assert/strict'
import { sign } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { createAuthority } from '@plat/testkit/authority'
import { startTestIdentity } from '@plat/testkit/identity'
import { claimsIn, json } from '../testing/broker.ts'
import { SPIFFE_PROOF_PREFIX } from './spiffe.ts'
import { jwkOf, signJwt } from './testing/jwt.ts'

const ID = 'spiffe://mesh.example/ns/default/sa/runner'
const session = { namespace: 'default', agent: 'assistant', session: 's1' }
const dir = mkdtempSync(path.join(os.tmpdir(), 'plat-'))
const bundle = path.join(dir, 'bundle.json')
const authority = await createAuthority({ name: 'mesh', now: Date.now() })
const jwtKey = await createAuthority({ name: 'jwt', now: Date.now() })
const keys = [
  { ...jwkOf(authority.privateKey), use: 'x509-svid', x5c: [authority.x5c] },
  { ...jwkOf(jwtKey.privateKey), kid: 'k1', use: 'jwt-svid' },
]
writeFileSync(bundle, JSON.stringify({ keys }))
const broker = await startTestIdentity(['-identity-checks', 'spiffe', '-spiffe-bundles', `mesh.example=${bundle}`])
after(async () => {
  await broker.stop()
  rmSync(dir, { recursive: true })
})

async function post(where: string, body: object) {
  const headers = { authorization: `Bearer ${broker.brokerToken}`, 'content-type': 'application/json' }
  const response = await fetch(broker.url + where, { method: 'POST', headers, body: JSON.stringify(body) })
  return { status: response.status, body: await json(response) }
}

async function signedProof() {
  const { body } = await post('/v1/proof/nonce', { check: 'spiffe' })
  const leaf = await authority.issue({ name: 'runner', uris: [ID] })
  const key = { key: leaf.privateKey, dsaEncoding: 'ieee-p1363' } as const
  const signature = sign('sha256', Buffer.from(`${SPIFFE_PROOF_PREFIX}${body.nonce}`), key).toString('base64url')
  return { check: 'spiffe', nonce: body.nonce, x5c: [leaf.x5c], format: 'ES256', signature }
}

test('a broker with the check enabled accepts a signed nonce and a certificate chain for a proof, once', async () => {
  // Shows D1.proof.check, D1.proof.nonce, D1.proof.x5c, D1.proof.signature, D1.proof.format, D1.flag.identity-checks.
  const proof = await signedProof()
  const mints = await Promise.all([1, 2, 3, 4].map(() => post('/v1/token', { ...session, proof })))
  assert.deepEqual(mints.map(({ status }) => status).sort(), [200, 403, 403, 403])
  const { body } = mints.find(({ status }) => status === 200) ?? assert.fail('no mint')
  const substrate = { check: 'spiffe', attestation: 'x509-svid', workload: ID }
  assert.deepEqual([body.substrate, claimsIn(body.token).plat_substrate], [substrate, substrate])
})

test('a nonce of another workload does not help: the signature is over the nonce', async () => {
  const [mine, other] = [await signedProof(), await signedProof()]
  const { status, body } = await post('/v1/token', { ...session, proof: { ...mine, nonce: other.nonce } })
  assert.equal(status, 403)
  assert.match(String(body.error), /^proof failed: neither/)
})

test('the same broker takes a JWT-SVID without nonce, and a check that is not enabled is unknown', async () => {
  // Shows D1.proof.token.
  const claims = { sub: ID, aud: 'plat-identity', exp: Math.floor(Date.now() / 1000) + 60 }
  const token = signJwt({ alg: 'ES256', kid: 'k1', typ: 'JWT' }, claims, jwtKey.privateKey)
  const minted = await post('/v1/token', { ...session, proof: { check: 'spiffe', token } })
  assert.deepEqual(minted.body.substrate, { check: 'spiffe', attestation: 'jwt-svid', workload: ID })
  const elsewhere = await post('/v1/token', { ...session, namespace: 'prod', proof: { check: 'spiffe', token } })
  assert.deepEqual(
    [elsewhere.status, elsewhere.body.error],
    [403, 'proof failed: the SPIFFE ID may not prove this session'],
  )
  const unknown = await post('/v1/token', { ...session, proof: { check: 'tee' } })
  assert.deepEqual([unknown.status, unknown.body.error], [400, 'unknown proof check'])
  assert.ok(!broker.log().some((line) => line.includes(token)))
})

import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { testProver } from '@plat/testkit/dpop'
import { tempFolder } from '@plat/testkit/local'
import type { StartIdentityOptions } from '../index.ts'
import { type BrokerResponse, claimsIn, jsonFile, startTestBroker, text } from '../testing/broker.ts'
import { newKeyPem } from '../testing/keys.ts'

async function setUp(t: TestContext, options: Partial<StartIdentityOptions> = {}) {
  const broker = await startTestBroker(t, options)
  const url = `${broker.identity.url}/v1/token/bind`
  const prover = testProver({ clock: broker.clock })
  const bindWith = (token: string, by = prover) => broker.bind(token, by.proof(url, token))
  return { ...broker, url, prover, bindWith }
}

function assertRefused(answer: BrokerResponse, status: number, error: string): void {
  assert.deepEqual([answer.status, answer.body.error], [status, error], JSON.stringify(answer.body))
  assert.equal(answer.headers.get('www-authenticate'), `DPoP algs="EdDSA ES256", error="${error}"`)
  assert.equal(typeof answer.body.error_description, 'string')
  assert.equal(answer.headers.get('cache-control'), 'no-store')
}

test('binding gives the same token with the proof key in it', async (t) => {
  // Shows D1.service.bindsDpopKeys, D1.state.bindBearer, D1.endpoint.token.bind, D1.bind.authorization,
  // D1.bind.dpopProof, D1.bind.response.token, D1.bind.response.tokenType, D1.bind.response.expiresAt,
  // D1.bind.response.jti, D1.bind.response.jkt, D1.auth.bindByToken.
  const { mint, verify, bindWith, clock } = await setUp(t)
  for (const alg of ['EdDSA', 'ES256'] as const) {
    const prover = testProver({ clock, alg })
    const minted = await mint({ user: 'ada', scopes: ['tools:notes'] })
    const { status, headers, body } = await bindWith(minted.token, prover)
    assert.equal(status, 200)
    assert.equal(headers.get('cache-control'), 'no-store')
    assert.deepEqual(Object.keys(body), ['token', 'tokenType', 'expiresAt', 'jti', 'jkt'])
    assert.deepEqual([body.tokenType, body.jti, body.jkt], ['DPoP', minted.jti, prover.jkt])
    assert.equal(body.expiresAt, '2026-01-01T00:15:00Z')
    assert.deepEqual(claimsIn(body.token), { ...claimsIn(minted.token), cnf: { jkt: prover.jkt } })
    assert.equal((await verify(text(body.token))).valid, true)
  }
})

test('a bound token stays bound: 400 by its own key, 409 by another, in either form of the token', async (t) => {
  // Shows D1.state.bindBoundToken, D1.state.bindAnotherKey, D1.error.bind.400.invalid_request,
  // D1.error.bind.409.invalid_grant, D1.bind.challenge, D1.error.bindShape.
  const { clock, mint, bindWith, prover } = await setUp(t)
  const { token } = await mint()
  const bound = text((await bindWith(token)).body.token)
  for (const form of [token, bound]) {
    assertRefused(await bindWith(form), 400, 'invalid_request')
    assertRefused(await bindWith(form, testProver({ clock })), 409, 'invalid_grant')
  }
  const minted = await mint({ dpopJkt: prover.jkt })
  assertRefused(await bindWith(minted.token), 400, 'invalid_request')
  assertRefused(await bindWith(minted.token, testProver({ clock })), 409, 'invalid_grant')
})

test('each of two replicas binds a token once, because neither sees the bind record of the other', async (t) => {
  // Shows D1.state.bindRecordPerReplica.
  const signingKey = path.join(tempFolder(), 'key.pem')
  await writeFile(signingKey, newKeyPem('EdDSA'))
  const [first, second] = [await setUp(t, { signingKey }), await setUp(t, { signingKey })]
  const { token } = await first.mint()
  for (const { bindWith, clock } of [first, second]) {
    assert.equal((await bindWith(token)).status, 200)
    assertRefused(await bindWith(token, testProver({ clock })), 409, 'invalid_grant')
  }
})

test('of many binds of one token at the same time exactly one wins', async (t) => {
  // Shows D1.state.firstBindWins.
  const { clock, mint, bindWith } = await setUp(t)
  const { token } = await mint()
  const provers = Array.from({ length: 30 }, () => testProver({ clock }))
  const answers = await Promise.all(provers.map((prover) => bindWith(token, prover)))
  const winner = answers.findIndex(({ status }) => status === 200)
  for (const [index, answer] of answers.entries()) {
    if (index !== winner) assertRefused(answer, 409, 'invalid_grant')
  }
  const again = await Promise.all(Array.from({ length: 5 }, () => bindWith(token, provers[winner])))
  for (const answer of again) assertRefused(answer, 400, 'invalid_request')
})

test('one proof binds once, even when it is sent many times at once', async (t) => {
  const { mint, bind, prover, url } = await setUp(t)
  const { token } = await mint()
  const proof = prover.proof(url, token)
  const statuses = (await Promise.all(Array.from({ length: 20 }, () => bind(token, proof)))).map(({ status }) => status)
  assert.equal(statuses.filter((status) => status === 200).length, 1)
  assert.ok(statuses.every((status) => status === 200 || status === 400))
})

test('a bad proof is refused, and does not bind', async (t) => {
  // Shows D1.error.bind.400.invalid_dpop_proof.
  const { identity, mint, bind, bindWith, prover, url } = await setUp(t)
  const { token } = await mint()
  const other = await mint()
  for (const proof of [
    null,
    'x',
    prover.proof(url),
    prover.proof(url, other.token),
    prover.proof(`${identity.url}/v1/exchange`, token),
    prover.proof('https://elsewhere.example/v1/token/bind', token),
    prover.proof(url, token, { claims: { htm: 'GET' } }),
    prover.proof(url, token, { claims: { iat: 1 } }),
    prover.proof(url, token, { header: { typ: 'jwt' } }),
  ]) {
    assertRefused(await bind(token, proof), 400, 'invalid_dpop_proof')
  }
  assert.equal((await bindWith(token)).status, 200)
})

test('a bind without a valid session token gets 401', async (t) => {
  // Shows D1.error.bind.401.invalid_token.
  const { clock, identity, mint, bindWith, url, prover } = await setUp(t)
  assertRefused(await bindWith('x'), 401, 'invalid_token')
  for (const authorization of ['', 'Bearer', 'Basic x', 'DPoP x']) {
    const headers = { authorization, dpop: prover.proof(url, 'x') }
    const response = await fetch(url, { method: 'POST', headers })
    assert.equal(response.status, 401, authorization)
    assert.match(response.headers.get('www-authenticate') ?? '', /error="invalid_token"/)
  }
  assert.equal((await fetch(`${identity.url}/v1/token/bind`, { method: 'POST' })).status, 401)
  const { token } = await mint()
  await clock.advance(900_000)
  assertRefused(await bindWith(token), 401, 'invalid_token')
})

test('a token of another audience, an exchanged one and a delegated one cannot be bound', async (t) => {
  // Shows D1.error.bind.400.invalid_grant.
  const exchangeConfig = await jsonFile({
    audiences: { 'plat-gateway': { allowedScopes: ['tools:a'], allowedNamespaces: ['default'] } },
  })
  const { mint, exchange, bindWith } = await setUp(t, { exchangeConfig })
  assertRefused(await bindWith((await mint({ audience: 'other' })).token), 400, 'invalid_grant')
  const subject = await mint({ scopes: ['tools:a', 'agents:helper'] })
  const exchanged = await exchange({ subject_token: subject.token, audience: 'plat-gateway' })
  assertRefused(await bindWith(text(exchanged.body.access_token)), 400, 'invalid_grant')
  const actor = await mint({ agent: 'helper', session: 'h1' })
  const delegated = await exchange({ subject_token: subject.token, actor_token: actor.token })
  assert.equal(delegated.status, 200)
  assertRefused(await bindWith(text(delegated.body.access_token)), 400, 'invalid_grant')
})

test('the URL of a proof is that of -public-url, whatever Host says', async (t) => {
  // Shows D1.flag.public-url.
  const { mint, bind, prover, url } = await setUp(t, { publicUrl: 'https://id.example/broker' })
  const { token } = await mint()
  assertRefused(await bind(token, prover.proof(url, token)), 400, 'invalid_dpop_proof')
  assert.equal((await bind(token, prover.proof('https://ID.example:443/broker/v1/token/bind', token))).status, 200)
})

test('a bind and its refusal are recorded without token or proof', async (t) => {
  const { mint, bindWith, lines } = await setUp(t)
  const { token, jti, spiffeId } = await mint()
  await bindWith(token)
  await bindWith(token)
  const records = lines.filter((line) => line.includes('"event":"bind"'))
  assert.equal(records.length, 2)
  for (const record of records) assert.ok(record.includes(jti) && record.includes(spiffeId))
  assert.match(records[0] ?? '', /"outcome":"issued"/)
  assert.match(records[1] ?? '', /"outcome":"refused".*"code":"invalid_request"/)
  assert.ok(!lines.join('').includes(token.split('.')[2] ?? '-'))
})

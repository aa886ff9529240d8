import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { testProver } from '@plat/testkit/dpop'
import { type TestIssuer, testIssuer } from '@plat/testkit/identity'
import { testTenants } from '@plat/testkit/tokens/tenants'
import { testTransactions } from '@plat/testkit/tokens/transactions'
import { signJws } from '@plat/tokens'
import { createTokenVerifier, createTransactionVerifier, type TokenVerifierOptions } from '../index.ts'

const URL_OF_SERVER = 'https://server.example/mcp'

function setUp(more: Partial<TokenVerifierOptions> = {}) {
  const clock = new TestClock()
  const issuer = testIssuer({ clock })
  const verifier = createTokenVerifier({
    trust: { publicKeys: [pemOf(issuer.signer)] },
    audience: 'plat-gateway',
    issuer: 'plat-identity',
    trustDomain: 'plat.local',
    clock,
    ...more,
  })
  const requestWith = (authorization: string | undefined, dpop?: string) => ({
    method: 'POST',
    url: URL_OF_SERVER,
    headers: { authorization, dpop },
  })
  return { clock, issuer, verifier, requestWith }
}

function pemOf({ publicKey }: TestIssuer['signer']): string {
  return publicKey.key.export({ type: 'spki', format: 'pem' }).toString()
}

test('a good token says who calls', async () => {
  const { issuer, verifier, requestWith } = setUp()
  const claims = await verifier.verifyRequest(requestWith(`Bearer ${issuer.token({ plat_groups: 'staff' })}`))
  assert.deepEqual(
    [claims.namespace, claims.agent, claims.user, claims.groups],
    ['default', 'assistant', 'ada', ['staff']],
  )
  const headers = new Headers({ authorization: `bearer ${issuer.token()}` })
  assert.equal((await verifier.verifyRequest({ method: 'GET', url: URL_OF_SERVER, headers })).session, 's1')
})

test('a token that the gateway refuses is refused here, for the same reason', async () => {
  const { issuer, verifier } = setUp()
  for (const { name, token, reason } of issuer.invalid()) {
    await assert.rejects(verifier.verifyToken(token), { name: 'TokenRefusedError', reason }, name)
  }
})

test('the key of a tenant signs for no namespace of another', async () => {
  const { signers, document } = testTenants({ red: ['default'], blue: ['other'] })
  const { issuer, verifier } = setUp({
    trust: { jwksURL: 'https://broker.example/jwks' },
    fetch: async () => Response.json(document),
  })
  const signed = (tenant: string) => signJws(signers[tenant] ?? assert.fail(), {}, issuer.claims())
  assert.equal((await verifier.verifyToken(signed('red'))).tenant, 'red')
  for (const tenant of ['blue', '']) {
    await assert.rejects(verifier.verifyToken(signed(tenant)), { name: 'TokenRefusedError', reason: 'binding' }, tenant)
  }
})

test('a request shows one token, once', async () => {
  const { issuer, verifier, requestWith } = setUp()
  const refused = async (request: Parameters<typeof verifier.verifyRequest>[0], reason: string) =>
    assert.rejects(verifier.verifyRequest(request), { name: 'TokenRefusedError', reason })
  await refused(requestWith(undefined), 'missing')
  await refused(requestWith('Basic eDp5'), 'malformed')
  await refused(requestWith('Bearer'), 'malformed')
  const twice = [`Bearer ${issuer.token()}`, `Bearer ${issuer.token()}`]
  await refused({ method: 'GET', url: URL_OF_SERVER, headers: { authorization: twice } }, 'malformed')
})

test('a bound token needs a proof of its key for this very request, once', async () => {
  const { issuer, verifier, requestWith, clock } = setUp()
  const prover = testProver({ clock })
  const token = issuer.token({ cnf: { jkt: prover.jkt } })
  const proof = prover.proof(URL_OF_SERVER, token)
  assert.equal((await verifier.verifyRequest(requestWith(`DPoP ${token}`, proof))).jkt, prover.jkt)
  const wrong: readonly [string, string | undefined, RegExp][] = [
    [`DPoP ${token}`, proof, /used before/],
    [`Bearer ${token}`, undefined, /set proof to "none"/],
    [`DPoP ${token}`, undefined, /the header DPoP is missing/],
    [`DPoP ${token}`, prover.proof('https://elsewhere.example/mcp', token), /another URL/],
    [`DPoP ${token}`, testProver({ clock }).proof(URL_OF_SERVER, token), /another key/],
    [`DPoP ${token}`, prover.proof(URL_OF_SERVER, issuer.token()), /another token/],
  ]
  for (const [authorization, dpop, message] of wrong) {
    await assert.rejects(verifier.verifyRequest(requestWith(authorization, dpop)), { reason: 'binding', message })
  }
})

test('the proof of a key can be required of all callers, or of none', async () => {
  const all = setUp({ proof: 'all' })
  await assert.rejects(
    all.verifier.verifyRequest(all.requestWith(`Bearer ${all.issuer.token()}`)),
    /not bound to a key/,
  )
  const none = setUp({ proof: 'none' })
  const token = none.issuer.token({ cnf: { jkt: testProver().jkt } })
  assert.equal((await none.verifier.verifyRequest(none.requestWith(`Bearer ${token}`))).agent, 'assistant')
})

test('keys are fetched when the first token comes, once, and followed when they change', async (t) => {
  const clock = new TestClock()
  let issuer = testIssuer({ clock })
  let fetched = 0
  const fetch: typeof globalThis.fetch = async () => {
    fetched++
    return new Response(JSON.stringify(issuer.jwks()))
  }
  const trust = { jwksURL: 'https://identity.example/.well-known/jwks.json' }
  const verifier = createTokenVerifier({ trust, audience: 'plat-gateway', fetch, clock })
  t.after(() => verifier.close())
  assert.equal(fetched, 0)
  await Promise.all([verifier.verifyToken(issuer.token()), verifier.verifyToken(issuer.token())])
  assert.equal(fetched, 1)
  issuer = testIssuer({ clock })
  await assert.rejects(verifier.verifyToken(issuer.token()), { reason: 'kid' }, 'fetched too soon')
  await clock.advance(10_000)
  assert.equal((await verifier.verifyToken(issuer.token())).agent, 'assistant')
  assert.equal(fetched, 2)
})

test('without a key document every token is refused', async (t) => {
  const issuer = testIssuer()
  const trust = { jwksURL: 'https://identity.example/.well-known/jwks.json' }
  const large = JSON.stringify(issuer.jwks()).padEnd(2 * 1024 * 1024)
  for (const answer of [() => Promise.reject(new Error('away')), async () => new Response(large)]) {
    const verifier = createTokenVerifier({ trust, audience: 'plat-gateway', fetch: answer })
    t.after(() => verifier.close())
    await assert.rejects(verifier.verifyToken(issuer.token()), { reason: 'kid' })
  }
})

test('a transaction names the caller, for the called agent alone', async () => {
  const clock = new TestClock()
  const gateway = testTransactions({ clock })
  const transactions = createTransactionVerifier({
    trust: { publicKeys: [pemOf(gateway.signer)] },
    audience: 'plat.local',
    namespace: 'default',
    agent: 'helper',
    clock,
  })
  const scope = 'agents:default/helper'
  const { txn, caller } = await transactions.verify(gateway.token({ scope, txn: 't1', plat_groups: 'staff' }))
  assert.deepEqual([txn, caller.agent, caller.user, caller.groups], ['t1', 'planner', 'ada', ['staff']])
  const wrong: readonly [string | undefined, string][] = [
    [undefined, 'missing'],
    [gateway.token({ scope: 'agents:default/other' }), 'audience'],
    [gateway.token({ scope: `${scope} agents:default/other` }), 'audience'],
    [gateway.token({ scope, aud: 'elsewhere' }), 'audience'],
    [gateway.token({ scope, exp: Math.floor(clock.now() / 1000) - 60 }), 'expired'],
    [gateway.token({ scope }, { typ: 'JWT' }), 'typ'],
    [gateway.token({ scope, txn: '' }), 'malformed'],
    [testTransactions({ clock }).token({ scope }), 'kid'],
    [testIssuer({ clock }).token(), 'typ'],
  ]
  for (const [token, reason] of wrong) await assert.rejects(transactions.verify(token), { reason })
})

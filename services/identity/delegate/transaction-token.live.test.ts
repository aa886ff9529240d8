import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { type TestContext, test } from 'node:test'
import { testProver } from '@plat/testkit/dpop'
import { listening } from '@plat/testkit/local'
import { testTransactions } from '@plat/testkit/tokens/transactions'
import type { StartIdentityOptions } from '../index.ts'
import { type BrokerResponse, claimsIn, jsonFile, startTestBroker } from '../testing/broker.ts'

const TXN_TOKEN = 'urn:ietf:params:oauth:token-type:txn_token'
const helper = { agent: 'helper', session: 'h1', scopes: ['tools:a'], inheritedTaints: ['mail'] }

async function setUp(t: TestContext, options: Partial<StartIdentityOptions> = {}) {
  const issuing = testTransactions()
  const broker = await startTestBroker(t, { txnTokenKeys: [await jsonFile(issuing.jwks)], ...options })
  const token: typeof issuing.token = (change, header) => {
    const now = broker.clock.now() / 1000
    return issuing.token({ iat: now, exp: now + 60, ...change }, header)
  }
  const delegate = (subject: string, actor: string, more: Readonly<Record<string, string>> = {}, proof?: string) =>
    broker.exchange(
      { subject_token: subject, subject_token_type: TXN_TOKEN, actor_token: actor, ...more },
      proof ?? null,
    )
  return { ...broker, token, stranger: testTransactions({ clock: broker.clock }), jwks: issuing.jwks, delegate }
}

function assertRefused({ status, body }: BrokerResponse, expectedStatus: number, error: string): void {
  assert.deepEqual([status, body.error], [expectedStatus, error], JSON.stringify(body))
}

test('the transaction token of a call lets the called agent act for the caller', async (t) => {
  // Shows D1.delegation.subject.transactionToken, D1.exchange.subject_token_type.txn_token, D1.flag.txn-token-keys.
  const { mint, token, delegate } = await setUp(t)
  const b = await mint(helper)
  const subject = token({
    scope: 'agents:default/helper',
    plat_groups: 'staff',
    plat_principal_verified: 'idToken',
    plat_inherited_taints: 'web',
  })
  const { status, body } = await delegate(subject, b.token)
  assert.equal(status, 200, JSON.stringify(body))
  // Remaining life of both tokens: a transaction token lives for a minute.
  assert.equal(body.expires_in, 60)
  const claims = claimsIn(body.access_token)
  assert.deepEqual(claims.act, {
    sub: 'spiffe://plat.local/ns/default/agent/planner/session/p1',
    act: { sub: 'user:ada' },
  })
  assert.equal(claims.sub, b.spiffeId)
  assert.equal(claims.plat_delegator_jti, 'jti-of-planner')
  assert.deepEqual(claims.plat_delegation_jtis, ['jti-of-planner', b.jti])
  assert.deepEqual(
    [claims.plat_groups, claims.plat_principal_verified, claims.plat_inherited_taints],
    ['staff', 'idToken', 'web mail'],
  )
})

test('a transaction token for another agent is invalid_target', async (t) => {
  const { mint, token, delegate } = await setUp(t)
  const b = (await mint(helper)).token
  for (const scope of ['agents:other', 'agents:team/helper', 'tools:helper', 'agents:helper agents:other', undefined]) {
    assertRefused(await delegate(token({ scope }), b), 400, 'invalid_target')
  }
  const elsewhere = (await mint({ ...helper, namespace: 'team' })).token
  assertRefused(await delegate(token(), elsewhere), 400, 'invalid_target')
})

test('a token that is not a transaction token of ours is invalid_grant', async (t) => {
  const { mint, token, delegate, stranger, clock } = await setUp(t)
  const b = (await mint(helper)).token
  const now = clock.now() / 1000
  const session = (await mint({ agent: 'planner', scopes: ['agents:helper'] })).token
  for (const subject of [
    'x',
    session,
    stranger.token(),
    token({}, { typ: 'JWT' }),
    token({}, { typ: undefined }),
    token({}, { alg: 'none' }),
    token({}, { kid: 'other' }),
    `${token()}x`,
    token({ aud: 'plat-gateway' }),
    token({ aud: undefined }),
    token({ exp: now }),
    token({ exp: undefined }),
    token({ iat: now + 6 }),
    token({ iat: undefined }),
    token({ txn: undefined }),
    token({ txn: '' }),
    token({ txn: 'x'.repeat(257) }),
    token({ tctx: undefined }),
    token({ tctx: {} }),
    token({ sub: 'planner' }),
    token({ sub: 'spiffe://elsewhere/ns/default/agent/planner/session/p1' }),
    token({ act: { sub: 'ada' } }),
    token({ sub: 'spiffe://plat.local/ns/default/agent/helper/session/other' }),
  ]) {
    assertRefused(await delegate(subject, b), 400, 'invalid_grant')
  }
})

test('a transaction token is never a session token', async (t) => {
  // Shows D1.header.transactionTokenRefused.
  const { mint, token, exchange, bind, verify } = await setUp(t)
  const b = (await mint(helper)).token
  const as = (more: Record<string, string>) => exchange({ subject_token: token(), ...more })
  assertRefused(await as({ actor_token: b }), 400, 'invalid_grant')
  assertRefused(await as({ audience: 'reports' }), 400, 'invalid_grant')
  assertRefused(await exchange({ subject_token: b, actor_token: token() }), 400, 'invalid_grant')
  assertRefused(await bind(token(), 'x'), 401, 'invalid_token')
  assert.equal((await verify(token())).valid, false)
})

test('a transaction is good once; the identical request within 10 s gets the same token', async (t) => {
  const { mint, token, delegate, clock } = await setUp(t)
  const b = (await mint(helper)).token
  const subject = token()
  const first = await delegate(subject, b)
  await clock.advance(9_000)
  const second = await delegate(subject, b)
  assert.equal(second.body.access_token, first.body.access_token)
  assert.deepEqual([first.body.expires_in, second.body.expires_in], [60, 51])
  assertRefused(await delegate(subject, b, { requested_ttl_seconds: '5' }), 400, 'invalid_grant')
  await clock.advance(1_000)
  assertRefused(await delegate(subject, b), 400, 'invalid_grant')
  await clock.advance(49_999)
  assertRefused(await delegate(subject, b), 400, 'invalid_grant')
})

test('a transaction token that lives longer than a minute is not good twice either', async (t) => {
  const { mint, token, delegate, clock } = await setUp(t)
  const b = (await mint(helper)).token
  const subject = token({ exp: clock.now() / 1000 + 600 })
  assert.equal((await delegate(subject, b)).status, 200)
  await clock.advance(599_000)
  assertRefused(await delegate(subject, b), 400, 'invalid_grant')
})

test('many requests with one transaction at the same time get one token', async (t) => {
  const { mint, token, delegate } = await setUp(t)
  const b = (await mint(helper)).token
  const subject = token()
  const answers = await Promise.all(Array.from({ length: 20 }, () => delegate(subject, b)))
  assert.equal(new Set(answers.map(({ body }) => body.access_token)).size, 1)
  const narrowed = await Promise.all(
    Array.from({ length: 10 }, (_, i) => delegate(token({ txn: 'shared' }), b, { requested_ttl_seconds: `${i + 1}` })),
  )
  assert.equal(narrowed.filter(({ status }) => status === 200).length, 1)
})

test('a bound actor proves its key for a transaction token too', async (t) => {
  const { mint, token, delegate, identity, clock } = await setUp(t)
  const prover = testProver({ clock })
  const b = (await mint({ ...helper, dpopJkt: prover.jkt })).token
  const subject = token()
  assertRefused(await delegate(subject, b), 400, 'invalid_dpop_proof')
  const { status, body } = await delegate(subject, b, {}, prover.proof(`${identity.url}/v1/exchange`, b))
  assert.equal(status, 200)
  assert.deepEqual(claimsIn(body.access_token).cnf, { jkt: prover.jkt })
})

test('the audience of transaction tokens is the trust domain, or what the flag says', async (t) => {
  // Shows D1.flag.txn-token-audience.
  const { mint, token, delegate } = await setUp(t, { txnTokenAudience: 'calls' })
  const b = (await mint(helper)).token
  assertRefused(await delegate(token(), b), 400, 'invalid_grant')
  assert.equal((await delegate(token({ aud: 'calls' }), b)).status, 200)
})

test('keys may come from a URL', async (t) => {
  let document = '{"keys":[]}'
  const server = createServer((_request, response) => response.end(document))
  const port = await listening(server)
  t.after(() => server.close())
  const url = `http://127.0.0.1:${port}/jwks.json`
  const { mint, token, jwks, delegate, clock } = await setUp(t, { txnTokenKeys: [url] })
  const b = (await mint(helper)).token
  assertRefused(await delegate(token(), b), 400, 'invalid_grant')
  document = JSON.stringify(jwks)
  await clock.advance(10_000)
  assert.equal((await delegate(token(), b)).status, 200)
})

test('without keys transaction tokens are not accepted, and unreadable keys prevent the start', async (t) => {
  const { mint, token, delegate } = await setUp(t, { txnTokenKeys: [] })
  assertRefused(await delegate(token(), (await mint(helper)).token), 400, 'invalid_request')
  await assert.rejects(setUp(t, { txnTokenKeys: ['/nowhere/keys.pem'] }), /-txn-token-keys: \/nowhere\/keys.pem/)
  const broken = await jsonFile('{"keys":')
  await assert.rejects(setUp(t, { txnTokenKeys: [broken] }), /-txn-token-keys: /)
})

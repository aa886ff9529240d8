import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import { type TestContext, test } from 'node:test'
import { testProver } from '@plat/testkit/dpop'
import { testIssuer } from '@plat/testkit/identity'
import { until } from '@plat/testkit/until'
import type { StartIdentityOptions } from '../index.ts'
import { type BrokerResponse, claimsIn, jsonFile, startTestBroker, text } from '../testing/broker.ts'
import type { CredentialProvider, CredentialRequest } from './provider.ts'

const GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange'
const JWT = 'urn:ietf:params:oauth:token-type:jwt'
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'

const config = {
  audiences: {
    reports: {
      maxTTLSeconds: 120,
      allowedScopes: ['tools:a', 'tools:b', 'tools:never-granted'],
      allowedNamespaces: ['default', 'team'],
    },
    usual: { allowedScopes: ['tools:a'], allowedNamespaces: ['default'] },
    nobody: { allowedScopes: ['tools:a'] },
    nothing: { allowedNamespaces: ['default'] },
    cloud: {
      allowedScopes: ['tools:a'],
      allowedNamespaces: ['default'],
      provider: 'aws-sts',
      params: { roleArn: 'arn:role' },
    },
  },
}

async function setUp(t: TestContext, options: Partial<StartIdentityOptions> = {}) {
  const requested: CredentialRequest[] = []
  let outcome: 'good' | 'failed' | 'throws' = 'good'
  const provider: CredentialProvider = {
    name: 'aws-sts',
    problems: () => [],
    leastSeconds: () => 0,
    async issue(request) {
      requested.push(request)
      if (outcome === 'throws') throw new Error('the body of the cloud')
      if (outcome === 'failed') return { kind: 'failed', reason: 'AccessDenied' }
      return { kind: 'credential', accessToken: '{"Version":1}', expiresInSeconds: 900 }
    },
  }
  const exchangeConfig = await jsonFile(config)
  const broker = await startTestBroker(t, { exchangeConfig, providers: () => [provider], ...options })
  const subject = (more: object = {}) =>
    broker.mint({ user: 'ada', scopes: ['tools:a', 'tools:b', 'tools:c'], groups: ['g1'], tier: 'tier-1', ...more })
  const url = `${broker.identity.url}/v1/exchange`
  const outcomeIs = (next: typeof outcome) => {
    outcome = next
  }
  return { ...broker, url, subject, requested, outcomeIs, exchangeConfig }
}

function assertRefused({ status, headers, body }: BrokerResponse, expectedStatus: number, error: string): void {
  assert.deepEqual([status, body.error], [expectedStatus, error], JSON.stringify(body))
  assert.equal(typeof body.error_description, 'string')
  assert.equal(headers.get('cache-control'), 'no-store')
}

test('a session token is exchanged for a narrower one, as a form and as JSON', async (t) => {
  // Shows D1.service.exchanges, D1.endpoint.exchange, D1.exchange.form, D1.exchange.json, D1.exchange.grant_type,
  // D1.exchange.subject_token, D1.exchange.audience, D1.exchange.scope, D1.exchange.requested_token_type,
  // D1.exchange.response.access_token, D1.exchange.response.issued_token_type, D1.exchange.response.token_type,
  // D1.exchange.response.expires_in, D1.exchange.response.scope, D1.exchange.rule.parentJti,
  // D1.claim.plat_parent_jti, D1.flag.exchange-config, D1.auth.exchangeByBody.
  const { exchange, post, subject, clock, verify } = await setUp(t)
  const { token, jti } = await subject()
  const parameters = {
    grant_type: GRANT,
    subject_token: token,
    subject_token_type: JWT,
    audience: 'reports',
    scope: 'tools:a',
    requested_token_type: 'urn:anything',
  }
  const noBrokerToken = { authorization: '' }
  for (const { status, headers, body } of [
    await exchange(parameters),
    await post('/v1/exchange', parameters, noBrokerToken),
  ]) {
    assert.equal(status, 200)
    assert.equal(headers.get('cache-control'), 'no-store')
    const { access_token, ...rest } = body
    assert.deepEqual(rest, { issued_token_type: JWT, token_type: 'Bearer', expires_in: 120, scope: 'tools:a' })
    const { jti: issuedJti, ...claims } = claimsIn(access_token)
    const now = clock.now() / 1000
    assert.deepEqual(claims, {
      iss: 'plat-identity',
      sub: 'spiffe://plat.local/ns/default/agent/assistant/session/s1',
      aud: 'reports',
      iat: now,
      nbf: now,
      exp: now + 120,
      act: { sub: 'user:ada' },
      scope: 'tools:a',
      plat_ns: 'default',
      plat_agent: 'assistant',
      plat_session: 's1',
      plat_tier: 'tier-1',
      plat_groups: 'g1',
      plat_parent_jti: jti,
    })
    assert.notEqual(issuedJti, jti)
    assert.equal((await verify(text(access_token), 'reports')).valid, true)
  }
})

test('the type of the subject may be jwt, access_token, or absent', async (t) => {
  // Shows D1.exchange.subject_token_type.jwt, D1.exchange.subject_token_type.access_token.
  const { exchange, subject } = await setUp(t)
  const { token: subject_token } = await subject()
  for (const type of [
    { subject_token_type: JWT },
    { subject_token_type: ACCESS_TOKEN },
    {},
    { subject_token_type: '' },
  ]) {
    assert.equal((await exchange({ subject_token, audience: 'usual', ...type })).status, 200)
  }
})

test('a request that is none is refused before its tokens are looked at', async (t) => {
  // Shows D1.error.exchange.400.invalid_request.subjectToken, D1.error.exchange.400.invalid_request.audience,
  // D1.error.exchange.400.invalid_request.form, D1.error.exchange.400.invalid_request.requestedTTL,
  // D1.error.exchange.400.invalid_request.tokenType.
  // Shows D1.error.exchange.400.invalid_request, D1.error.exchange.400.unsupported_grant_type,
  // D1.error.exchangeShape, D1.exchange.actor_token_type.
  const { identity, exchange, post } = await setUp(t)
  const fine = { subject_token: 'x', audience: 'reports' }
  assertRefused(await exchange({ ...fine, grant_type: 'client_credentials' }), 400, 'unsupported_grant_type')
  for (const wrong of [
    { audience: 'reports' },
    { subject_token: 'x' },
    { ...fine, subject_token: '' },
    { ...fine, audience: '' },
    { ...fine, subject_token_type: 'urn:ietf:params:oauth:token-type:saml2' },
    { ...fine, subject_token_type: 'urn:ietf:params:oauth:token-type:txn_token' },
    { ...fine, actor_token_type: JWT },
    { ...fine, actor_token: 'x', actor_token_type: 'urn:ietf:params:oauth:token-type:id_token' },
    ...['0', '-1', '5m', '1.5', '1e9', '0x10', ' 5', '٣'].map((ttl) => ({ ...fine, requested_ttl_seconds: ttl })),
  ]) {
    assertRefused(await exchange(wrong), 400, 'invalid_request')
  }
  for (const wrong of [
    '{',
    '[]',
    '{"subject_token":"x","subject_token":"y","audience":"reports"}',
    { ...fine, audience: ['reports'] },
    { ...fine, subject_token: { token: 'x' } },
    { ...fine, scope: 1 },
    { ...fine, requested_token_type: {} },
    ...[0, -1, 1.5, null, true, []].map((ttl) => ({ ...fine, requested_ttl_seconds: ttl })),
  ]) {
    assertRefused(await post('/v1/exchange', wrong), 400, 'invalid_request')
  }
  const form = { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' }
  for (const wrong of ['subject_token=x&subject_token=y&audience=reports', 'a=%', 'a=%ff', 'a=1&a=1&subject_token=x']) {
    assertRefused(await post('/v1/exchange', wrong, form), 400, 'invalid_request')
  }
  assertRefused(await post('/v1/exchange', 'x', { 'content-type': 'text/plain' }), 400, 'invalid_request')
  const inUrl = await post('/v1/exchange?scope=tools:a', fine)
  assertRefused(inUrl, 400, 'invalid_request')
  assert.match(text(inUrl.body.error_description), /not into the URL/)
  assertRefused(await post('/v1/exchange', ' '.repeat(65_537)), 413, 'invalid_request')
  const wrongMethod = await fetch(`${identity.url}/v1/exchange`)
  assert.deepEqual([wrongMethod.status, wrongMethod.headers.get('allow')], [405, 'POST'])
})

test('a subject that is not a session token of ours is invalid_grant', async (t) => {
  // Shows D1.error.exchange.400.invalid_grant.subject, D1.error.exchange.400.invalid_grant.exchanged.
  // Shows D1.exchange.rule.sessionTokenOnly, D1.exchange.rule.notExchanged, D1.error.exchange.400.invalid_grant.
  const { exchange, subject, mint, clock } = await setUp(t)
  const refused = async (subject_token: string) =>
    assertRefused(await exchange({ subject_token, audience: 'reports' }), 400, 'invalid_grant')
  await refused('x')
  await refused(testIssuer({ clock }).token())
  await refused((await mint({ audience: 'elsewhere', scopes: ['tools:a'] })).token)
  const { token } = await subject()
  const { body } = await exchange({ subject_token: token, audience: 'reports' })
  await refused(text(body.access_token))
  await clock.advance(900_000)
  await refused(token)
})

test('an exchanged token is refused even where the audience is that of sessions', async (t) => {
  const exchangeConfig = await jsonFile({
    audiences: { 'plat-gateway': { allowedScopes: ['tools:a'], allowedNamespaces: ['default'] } },
  })
  const { exchange, subject } = await setUp(t, { exchangeConfig })
  const first = await exchange({ subject_token: (await subject()).token, audience: 'plat-gateway' })
  assert.equal(first.status, 200)
  const again = { subject_token: text(first.body.access_token), audience: 'plat-gateway' }
  assertRefused(await exchange(again), 400, 'invalid_grant')
})

test('an audience that is not listed or not for the namespace is invalid_target', async (t) => {
  // Shows D1.error.exchange.400.invalid_target.unlisted, D1.error.exchange.400.invalid_target.namespace.
  // Shows D1.exchange.rule.audienceListed, D1.exchange.rule.namespaceAllowed, D1.error.exchange.400.invalid_target.
  const { exchange, subject } = await setUp(t)
  const mine = (await subject()).token
  const theirs = (await subject({ namespace: 'team' })).token
  const foreign = (await subject({ namespace: 'foreign' })).token
  for (const [subject_token, audience] of [
    [mine, 'unlisted'],
    [mine, 'nobody'],
    [mine, '__proto__'],
    [mine, 'Reports'],
    [theirs, 'usual'],
    [foreign, 'reports'],
  ] as const) {
    assertRefused(await exchange({ subject_token, audience }), 400, 'invalid_target')
  }
  assert.equal((await exchange({ subject_token: theirs, audience: 'reports' })).status, 200)
})

test('only what is requested, allowed and granted is in the result', async (t) => {
  // Shows D1.exchange.rule.scopesIntersected, D1.exchange.scope.empty, D1.error.exchange.400.invalid_scope.
  const { exchange, subject } = await setUp(t)
  const { token: subject_token } = await subject()
  const scopeOf = async (scope: string, audience = 'reports') => {
    const { body } = await exchange({ subject_token, audience, scope })
    assert.equal(claimsIn(body.access_token).scope, body.scope)
    return body.scope
  }
  assert.equal(await scopeOf(''), 'tools:a tools:b')
  assert.equal(await scopeOf('tools:b tools:never-granted tools:c'), 'tools:b')
  assert.equal(await scopeOf('tools:b  tools:a tools:b'), 'tools:a tools:b')
  for (const [scope, audience] of [
    ['tools:c', 'reports'],
    ['tools:never-granted', 'reports'],
    ['tools:*', 'reports'],
    ['tools:A', 'reports'],
    ['', 'nothing'],
  ] as const) {
    assertRefused(await exchange({ subject_token, audience, scope }), 400, 'invalid_scope')
  }
  const unscoped = (await subject({ scopes: [] })).token
  assertRefused(await exchange({ subject_token: unscoped, audience: 'reports' }), 400, 'invalid_scope')
})

test('the result lives as long as the least of audience, request and subject allows', async (t) => {
  // Shows D1.exchange.rule.lifetime, D1.exchange.rule.neverLongerThanSubject, D1.exchange.requested_ttl_seconds,
  // D1.limit.exchangeLifetime.
  const { exchange, post, subject, clock } = await setUp(t)
  const { token: subject_token } = await subject({ ttlSeconds: 600 })
  const lifetime = async (audience: string, ttl: string) => {
    const { body } = await exchange({ subject_token, audience, requested_ttl_seconds: ttl })
    const { iat, exp } = claimsIn(body.access_token)
    assert.equal(Number(exp) - Number(iat), body.expires_in)
    return body.expires_in
  }
  assert.deepEqual([await lifetime('usual', ''), await lifetime('reports', '')], [300, 120])
  assert.deepEqual([await lifetime('usual', '7'), await lifetime('usual', '9'.repeat(400))], [7, 300])
  const asNumber = await post('/v1/exchange', { subject_token, audience: 'usual', requested_ttl_seconds: 1e9 })
  assert.equal(asNumber.body.expires_in, 300)
  await clock.advance(590_500)
  assert.deepEqual([await lifetime('usual', ''), await lifetime('usual', '60')], [10, 10])
})

test('a bound subject keeps its key in the result, and needs no proof for it', async (t) => {
  // Shows D1.exchange.rule.downScopeKeepsBinding.
  const { exchange, subject, bind, identity, clock } = await setUp(t)
  const prover = testProver({ clock })
  const minted = (await subject({ dpopJkt: prover.jkt })).token
  const later = (await subject()).token
  const bound = await bind(later, prover.proof(`${identity.url}/v1/token/bind`, later))
  // The token as it was before the bind is bound by record.
  for (const subject_token of [minted, text(bound.body.token), later]) {
    const { status, body } = await exchange({ subject_token, audience: 'reports' })
    assert.equal(status, 200)
    assert.equal(body.token_type, 'Bearer')
    assert.deepEqual(claimsIn(body.access_token).cnf, { jkt: prover.jkt })
  }
})

test('a provider gets the session, and its credential is the answer', async (t) => {
  // Shows D1.exchange.rule.providerCredential.
  const { exchange, subject, requested, lines } = await setUp(t)
  const { token: subject_token, jti } = await subject()
  const { status, body } = await exchange({ subject_token, audience: 'cloud', scope: 'tools:a tools:b' })
  assert.equal(status, 200)
  assert.deepEqual(body, {
    access_token: '{"Version":1}',
    issued_token_type: JWT,
    token_type: 'Bearer',
    expires_in: 900,
    scope: 'tools:a',
  })
  const [request] = requested
  assert.ok(request !== undefined)
  assert.deepEqual([request.subject.jti, request.audienceName, request.scopes], [jti, 'cloud', ['tools:a']])
  assert.deepEqual([request.lifetimeSeconds, request.audience.params], [300, { roleArn: 'arn:role' }])
  const record = lines.find((line) => line.includes('"event":"exchange"')) ?? ''
  assert.ok(record.includes(request.jti) && record.includes('"provider":"aws-sts"') && record.includes(jti))
})

test('a bound subject proves its key before a provider is called', async (t) => {
  // Shows D1.exchange.rule.boundSubjectNeedsProof, D1.error.exchange.400.invalid_dpop_proof.
  const { exchange, subject, url, requested, clock, identity, bind } = await setUp(t)
  const prover = testProver({ clock, alg: 'ES256' })
  const { token } = await subject({ dpopJkt: prover.jkt })
  const parameters = { subject_token: token, audience: 'cloud' }
  for (const proof of [
    null,
    'x',
    testProver({ clock }).proof(url, token),
    prover.proof(`${identity.url}/v1/token/bind`, token),
    prover.proof(url, 'another token'),
    prover.proof(url, null, { claims: { htm: 'GET' } }),
  ]) {
    assertRefused(await exchange(parameters, proof), 400, 'invalid_dpop_proof')
  }
  assert.equal(requested.length, 0)
  const proof = prover.proof(url)
  assert.equal((await exchange(parameters, proof)).status, 200)
  assertRefused(await exchange(parameters, proof), 400, 'invalid_dpop_proof')
  assert.equal((await exchange(parameters, prover.proof(url, token))).status, 200)
  const later = (await subject()).token
  await bind(later, prover.proof(`${identity.url}/v1/token/bind`, later))
  assertRefused(await exchange({ ...parameters, subject_token: later }), 400, 'invalid_dpop_proof')
})

test('a failing provider gives 502, and nothing of its response reaches the caller', async (t) => {
  // Shows D1.error.exchange.502.server_error.
  const { exchange, subject, outcomeIs, lines } = await setUp(t)
  const { token: subject_token } = await subject()
  for (const outcome of ['failed', 'throws'] as const) {
    outcomeIs(outcome)
    const answer = await exchange({ subject_token, audience: 'cloud' })
    assertRefused(answer, 502, 'server_error')
    assert.ok(!JSON.stringify(answer.body).includes('AccessDenied'))
  }
  assert.ok(!lines.join('').includes('the body of the cloud'))
})

test('the order of refusals is request, grant, target, scope, proof', async (t) => {
  const { exchange, subject, clock } = await setUp(t)
  const bad = { subject_token: 'x', audience: 'unlisted', scope: 'tools:c', requested_ttl_seconds: '0' }
  assertRefused(await exchange(bad), 400, 'invalid_request')
  assertRefused(await exchange({ ...bad, requested_ttl_seconds: '1' }), 400, 'invalid_grant')
  const { token: subject_token } = await subject({ dpopJkt: testProver({ clock }).jkt })
  assertRefused(await exchange({ subject_token, audience: 'unlisted', scope: 'tools:c' }), 400, 'invalid_target')
  assertRefused(await exchange({ subject_token, audience: 'cloud', scope: 'tools:c' }), 400, 'invalid_scope')
  assertRefused(await exchange({ subject_token, audience: 'cloud', scope: 'tools:a' }), 400, 'invalid_dpop_proof')
})

test('the file is read again when it changes, and a bad one leaves the audiences as they were', async (t) => {
  const { exchange, subject, clock, exchangeConfig, lines } = await setUp(t)
  const { token: subject_token } = await subject()
  const status = async (audience: string) => (await exchange({ subject_token, audience })).status
  const written = async (text: string, sign: string) => {
    await fs.writeFile(exchangeConfig, text)
    const before = lines.length
    await clock.advance(10_000)
    await until(() => lines.slice(before).some((line) => line.includes(sign)), sign)
  }
  const next = { audiences: { fresh: { allowedScopes: ['tools:a'], allowedNamespaces: ['default'] } } }
  await written(JSON.stringify(next), 'configuration read')
  assert.deepEqual([await status('fresh'), await status('usual')], [200, 400])
  await written('{', 'the old one stays')
  assert.equal(await status('fresh'), 200)
})

test('the broker does not start when its file is missing or invalid', async (t) => {
  await assert.rejects(
    setUp(t, { exchangeConfig: '/nowhere/x.json' }),
    /-exchange-config: \/nowhere\/x.json is missing/,
  )
  const wrong = await jsonFile({ audiences: { a: { provider: 'gcp-sts' } } })
  await assert.rejects(setUp(t, { exchangeConfig: wrong }), /provider "gcp-sts": needs -federation-key/)
})

test('without a file there is no audience', async (t) => {
  const { exchange, mint } = await startTestBroker(t)
  const { token: subject_token } = await mint({ scopes: ['tools:a'] })
  assertRefused(await exchange({ subject_token, audience: 'reports' }), 400, 'invalid_target')
})

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { generateKeyFiles } from '@plat/keys'
import { startTestIdentity, testIssuer } from '@plat/testkit/identity'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { createLocalJWKSet, jwtVerify } from 'jose'
import { defaultSettings, identityFlags } from './flags.ts'
import { BROKER_TOKEN, base, claimsIn, json, startTestBroker } from './testing/broker.ts'
import { raw } from './testing/raw.ts'

/** A mint request that says everything but `proof` and `audience`. */
const fullRequest = {
  ...base,
  user: 'ada',
  scopes: ['tools:notes', 'tools:web'],
  tier: 'tier-1',
  ttlSeconds: 60,
  groups: ['g1', 'g2'],
  principalVerified: 'requester',
  parentSession: 's0',
  forkRoot: 's0',
  inheritedTaints: ['web'],
}

test('a minted token has every claim of its request and verifies with an independent library', async (t) => {
  // Shows D1.service.issuesSessionTokens, D1.service.publishesJwks, D1.header.compactJws, D1.header.alg,
  // D1.header.kid, D1.claim.iss, D1.claim.sub, D1.claim.aud, D1.claim.iat, D1.claim.nbf, D1.claim.exp, D1.claim.jti,
  // D1.claim.act, D1.claim.scope, D1.claim.plat_ns, D1.claim.plat_agent, D1.claim.plat_session, D1.claim.plat_tier,
  // D1.claim.plat_groups, D1.claim.plat_principal_verified, D1.claim.plat_parent_session, D1.claim.plat_fork_root,
  // D1.claim.plat_inherited_taints, D1.claim.cnf.jkt, D1.state.mintWithDpopJkt, D1.endpoint.token, D1.endpoint.jwks,
  // D1.mint.namespace, D1.mint.agent, D1.mint.session, D1.mint.user, D1.mint.scopes, D1.mint.tier,
  // D1.mint.ttlSeconds, D1.mint.groups, D1.mint.principalVerified, D1.mint.parentSession, D1.mint.forkRoot,
  // D1.mint.inheritedTaints, D1.mint.dpopJkt, D1.mint.response.token, D1.mint.response.expiresAt,
  // D1.mint.response.spiffeId, D1.mint.response.jti, D1.mint.response.kid, D1.mint.response.tokenType,
  // D1.jwks.contentType, D1.jwks.cacheControl, D1.jwks.signingKey, D1.endpoint.keyDocumentsCached,
  // D1.limit.keyDocumentCaching, D1.flag.issuer, D1.flag.audience.
  const { identity, clock, post } = await startTestBroker(t)
  const jkt = testIssuer().signer.kid
  const { status, headers, body } = await post('/v1/token', { ...fullRequest, dpopJkt: jkt })
  assert.equal(status, 200)
  assert.equal(headers.get('cache-control'), 'no-store')
  assert.equal(body.spiffeId, 'spiffe://plat.local/ns/default/agent/assistant/session/s1')
  assert.equal(body.tokenType, 'DPoP')
  assert.equal(body.expiresAt, '2026-01-01T00:01:00Z')
  const jwks = await fetch(`${identity.url}/.well-known/jwks.json`)
  assert.equal(jwks.headers.get('content-type'), 'application/jwk-set+json')
  assert.equal(jwks.headers.get('cache-control'), 'public, max-age=300')
  const { payload, protectedHeader } = await jwtVerify(
    String(body.token),
    createLocalJWKSet(JSON.parse(await jwks.text())),
    {
      issuer: 'plat-identity',
      audience: 'plat-gateway',
      currentDate: new Date(clock.now()),
    },
  )
  assert.deepEqual(protectedHeader, { alg: 'EdDSA', kid: body.kid })
  const iat = clock.now() / 1000
  assert.deepEqual(payload, {
    iss: 'plat-identity',
    sub: body.spiffeId,
    aud: 'plat-gateway',
    iat,
    nbf: iat,
    exp: iat + 60,
    jti: body.jti,
    act: { sub: 'user:ada' },
    scope: 'tools:notes tools:web',
    plat_ns: 'default',
    plat_agent: 'assistant',
    plat_session: 's1',
    plat_tier: 'tier-1',
    plat_groups: 'g1 g2',
    plat_principal_verified: 'requester',
    plat_parent_session: 's0',
    plat_fork_root: 's0',
    plat_inherited_taints: 'web',
    cnf: { jkt },
  })
})

test('a token says how its user was bound, in the words of the request', async (t) => {
  // Shows D1.mint.principalVerified.requester, D1.mint.principalVerified.trustedCreator, D1.mint.principalVerified.idToken.
  const { post, mint } = await startTestBroker(t)
  for (const principalVerified of ['requester', 'trustedCreator', 'idToken']) {
    const { token } = await mint({ user: 'ada', principalVerified })
    assert.equal(claimsIn(token).plat_principal_verified, principalVerified)
  }
  const { status, body } = await post('/v1/token', { ...fullRequest, principalVerified: 'hearsay' })
  assert.deepEqual([status, body.error], [400, 'invalid principalVerified'])
})

test('a lifetime of 0 is the default, and nothing outlives the cap', async (t) => {
  // Shows D1.mint.ttlSeconds.zero, D1.mint.ttlSeconds.capped, D1.flag.default-ttl, D1.flag.max-ttl,
  // D1.limit.defaultLifetime, D1.limit.maximumLifetime.
  const lifetimeOf = async ({ mint }: Awaited<ReturnType<typeof startTestBroker>>, ttlSeconds: number) => {
    const { token } = await mint({ ttlSeconds })
    const { iat, exp } = claimsIn(token)
    return Number(exp) - Number(iat)
  }
  const documented = await startTestBroker(t)
  assert.deepEqual([await lifetimeOf(documented, 0), await lifetimeOf(documented, 3601)], [900, 3600])
  const received = await startTestBroker(t, { defaultTtlMs: 120_000, maxTtlMs: 600_000 })
  const lifetime = (ttlSeconds: number) => lifetimeOf(received, ttlSeconds)
  assert.deepEqual(
    [await lifetime(0), await lifetime(1), await lifetime(601), await lifetime(2 ** 52)],
    [120, 1, 600, 600],
  )
})

test('verify answers 200 with claims or with the reason, and 400 only without a token', async (t) => {
  // Shows D1.service.verifiesTokens, D1.endpoint.token.verify, D1.mint.audience, D1.verify.token,
  // D1.verify.audience, D1.verify.checks.signature, D1.verify.checks.issuer, D1.verify.checks.expiry,
  // D1.verify.checks.audience, D1.verify.valid, D1.verify.invalid, D1.verify.missingToken, D1.error.verify.400.
  const { clock, post, mint, verify } = await startTestBroker(t)
  const { token } = await mint({ user: 'ada' })
  assert.deepEqual(await verify(token), { valid: true, claims: claimsIn(token) })
  assert.deepEqual(await verify(token, ''), { valid: true, claims: claimsIn(token) })
  assert.deepEqual(await verify(token, 'other'), { valid: false, error: 'token is for another audience' })
  const elsewhere = await mint({ audience: 'other' })
  assert.equal((await verify(elsewhere.token)).valid, false)
  assert.equal((await verify(elsewhere.token, 'other')).valid, true)
  for (const { name, token: bad } of testIssuer({ clock }).invalid()) {
    if (bad !== '') assert.equal((await verify(bad)).valid, false, name)
  }
  await clock.advance(900_000)
  assert.deepEqual(await verify(token), { valid: false, error: 'token has expired' })
  for (const body of [{}, { token: '' }, { token: null }, { token: 1 }, { token, extra: 1 }, '{', '']) {
    assert.equal((await post('/v1/token/verify', body)).status, 400, JSON.stringify(body))
  }
})

test('only the broker token opens the broker-token endpoints', async (t) => {
  // Shows D1.auth.brokerToken.env, D1.auth.brokerToken.wrong, D1.auth.brokerToken.challenge,
  // D1.error.token.401.unauthorized, D1.endpoint.noStore.
  const { identity, post, lines } = await startTestBroker(t)
  const wrong = [
    '',
    'Bearer',
    'Bearer ',
    'Bearer broker-secre',
    'Bearer broker-secret2',
    `Basic ${BROKER_TOKEN}`,
    BROKER_TOKEN,
  ]
  for (const where of ['/v1/token', '/v1/token/verify']) {
    for (const authorization of wrong) {
      const { status, headers, body } = await post(where, 'not even JSON', { authorization })
      assert.equal(status, 401, authorization)
      assert.deepEqual(body, { error: 'unauthorized' })
      assert.equal(headers.get('www-authenticate'), 'Bearer realm="plat-identity"')
      assert.equal(headers.get('cache-control'), 'no-store')
    }
    assert.equal((await post(`${where}?access_token=${BROKER_TOKEN}`, base, { authorization: '' })).status, 401)
  }
  assert.equal((await post('/v1/token', base, { authorization: `bEARER   ${BROKER_TOKEN}` })).status, 200)
  const twice = await raw(
    identity.port,
    `POST /v1/token HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${BROKER_TOKEN}\r\nAuthorization: Bearer x\r\nContent-Length: 0\r\n\r\n`,
  )
  assert.match(twice, /^HTTP\/1\.1 40[01] /)
  assert.ok(!lines.join('').includes(BROKER_TOKEN))
})

test('everything outside the contract answers {error}', async (t) => {
  // Shows D1.error.brokerTokenShape, D1.mint.contentType.
  const { identity, post } = await startTestBroker(t)
  assert.equal((await post('/v1/token', base, { 'content-type': 'text/plain' })).status, 415)
  assert.equal((await post('/v1/token', base, { 'content-encoding': 'gzip' })).status, 415)
  for (const [method, where, status] of [
    ['GET', '/v1/token', 405],
    ['PUT', '/v1/token/verify', 405],
    ['POST', '/healthz', 405],
    ['GET', '/v1/bootstrap', 404],
    ['GET', '/v1/proof/nonce', 405],
    ['POST', '/v1/nothing', 404],
    ['GET', '/.well-known/openid-configuration', 404],
  ] as const) {
    const response = await fetch(identity.url + where, { method })
    assert.equal(response.status, status, `${method} ${where}`)
    assert.equal(response.headers.get('cache-control'), 'no-store')
    assert.deepEqual(Object.keys(await json(response)), ['error'])
  }
})

test('a body of exactly 64 KiB is read and one byte more is not, in both framings', async (t) => {
  // Shows D1.limit.body.
  const { identity } = await startTestBroker(t)
  const text = JSON.stringify(base)
  const head = `POST /v1/token HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${BROKER_TOKEN}\r\nContent-Type: application/json\r\n`
  for (const [size, expected] of [
    [64 * 1024, /^HTTP\/1\.1 200 /],
    [64 * 1024 + 1, /^HTTP\/1\.1 413 /],
  ] as const) {
    const body = text + ' '.repeat(size - text.length)
    assert.match(await raw(identity.port, `${head}Content-Length: ${size}\r\n\r\n${body}`), expected)
    assert.match(
      await raw(identity.port, `${head}Transfer-Encoding: chunked\r\n\r\n${size.toString(16)}\r\n${body}\r\n0\r\n\r\n`),
      expected,
    )
  }
})

test('issuance and refusals are logged, and never the token', async (t) => {
  const { lines, mint } = await startTestBroker(t)
  const minted = await mint({ user: 'ada' })
  await mint({ scopes: ['a b'] })
  const issued = lines.find((line) => line.includes('"outcome":"issued"')) ?? ''
  assert.ok(issued.includes(minted.jti) && issued.includes(minted.spiffeId))
  assert.ok(lines.some((line) => line.includes('"outcome":"refused"') && line.includes('invalid scope')))
  const signature = minted.token.split('.')[2] ?? ''
  assert.ok(signature.length > 80)
  assert.ok(!lines.join('').includes(signature))
})

test('a new signing key is published at once, signs after 300 s, and the old one stays while its tokens live', async (t) => {
  // Shows D1.jwks.retiredKeys.
  const dir = tempFolder()
  const { keyPath } = await generateKeyFiles(dir)
  const { clock, identity, mint, verify } = await startTestBroker(t, { signingKey: keyPath, maxTtlMs: 600_000 })
  const kids = async () => {
    const { keys } = await json(await fetch(`${identity.url}/.well-known/jwks.json`))
    assert.ok(Array.isArray(keys))
    return keys.map((key) => String(key.kid))
  }
  const old = await mint()
  await fs.rm(keyPath)
  await generateKeyFiles(dir)
  await clock.advance(10_000)
  await until(async () => (await kids()).length === 2, 'the next key in the set')
  const published = await kids()
  assert.equal(published.length, 2)
  await clock.advance(299_000)
  assert.equal((await mint()).kid, old.kid)
  await clock.advance(1_000)
  const fresh = await mint()
  assert.equal(fresh.kid, published[1])
  assert.equal((await verify(old.token)).valid, true)
  // A token counts for its lifetime, and at those who grant a leeway for that.
  await clock.advance(659_000)
  assert.equal((await kids()).length, 2)
  await clock.advance(1_000)
  assert.deepEqual(await kids(), [fresh.kid])
})

test('previous keys stay trusted and in the key document', async (t) => {
  // Shows D1.flag.previous-keys.
  const dir = tempFolder()
  const first = await generateKeyFiles(path.join(dir, 'old'))
  const before = await startTestBroker(t, { signingKey: first.keyPath })
  const { token, kid } = await before.mint()
  const next = await generateKeyFiles(path.join(dir, 'new'))
  const after = await startTestBroker(t, { signingKey: next.keyPath, previousKeys: [path.join(dir, 'old')] })
  assert.equal((await after.verify(token)).valid, true)
  const text = await (await fetch(`${after.identity.url}/.well-known/jwks.json`)).text()
  assert.ok(text.includes(kid))
})

test('readiness fails while the broker drains, liveness does not', async (t) => {
  // Shows D1.service.servesProbes, D1.state.readinessDrains, D1.endpoint.healthz, D1.endpoint.readyz,
  // D1.probe.healthz, D1.probe.readyz, D1.probe.readyz.draining, D1.error.readyz.503, D1.flag.shutdown-delay.
  const { clock, identity } = await startTestBroker(t, { shutdownDelayMs: 5000 })
  assert.deepEqual(await (await fetch(`${identity.url}/readyz`)).json(), { status: 'ready' })
  const drained = identity.drain()
  const draining = await fetch(`${identity.url}/readyz`)
  assert.equal(draining.status, 503)
  assert.deepEqual(await draining.json(), { status: 'shutting down' })
  assert.deepEqual(await (await fetch(`${identity.url}/healthz`)).json(), { status: 'ok' })
  await clock.advance(5000)
  await drained
  await assert.rejects(fetch(`${identity.url}/healthz`))
})

test('the version says what runs', async (t) => {
  // Shows D1.endpoint.version, D1.probe.version.component, D1.probe.version.version, D1.probe.version.commit,
  // D1.probe.version.buildDate, D1.probe.version.goVersion, D1.probe.version.platform, D1.probe.version.tags.
  const { identity } = await startTestBroker(t)
  const version = await json(await fetch(`${identity.url}/version`))
  const members = ['component', 'version', 'commit', 'buildDate', 'goVersion', 'platform', 'tags']
  assert.deepEqual(Object.keys(version), members)
  assert.equal(version.component, 'identity')
  assert.equal(version.goVersion, `node${process.versions.node}`)
  for (const member of members) assert.equal(typeof version[member], 'string', member)
})

test('metrics are plat_build_info and nothing else', async (t) => {
  // Shows D1.endpoint.metrics, D1.probe.metrics.buildInfoOnly and D3.exposition.brokerOnlyBuildInfo.
  const { identity, mint } = await startTestBroker(t)
  await mint()
  const text = await (await fetch(`${identity.url}/metrics`)).text()
  const series = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  assert.equal(series.length, 1)
  assert.match(series[0] ?? '', /^plat_build_info\{component="identity",/)
})

test('the broker does not start without a token, nor over what it cannot use', async (t) => {
  // Shows D1.auth.brokerToken.required, D1.auth.brokerToken.file.
  const file = path.join(tempFolder(), 'token')
  await fs.writeFile(file, 'from-file\n')
  await assert.rejects(startTestBroker(t, { env: {} }), /PLAT_BROKER_TOKEN or PLAT_BROKER_TOKEN_FILE must be set/)
  await assert.rejects(startTestBroker(t, { env: { PLAT_BROKER_TOKEN: '' } }), /PLAT_BROKER_TOKEN is empty/)
  await assert.rejects(startTestBroker(t, { trustDomain: 'Plat' }), /-trust-domain Plat/)
  await assert.rejects(startTestBroker(t, { signingKey: `${file}.pem` }), /-signing-key: .*token\.pem cannot be read/)
  await assert.rejects(startTestBroker(t, { signingKey: file }), /-signing-key: .*holds no private key/)
  const { post } = await startTestBroker(t, { env: { PLAT_BROKER_TOKEN_FILE: file } })
  assert.equal((await post('/v1/token', base, { authorization: 'Bearer from-file' })).status, 200)
})

test('the binary serves, drains on SIGTERM with status 0, and refuses what is wrong', async () => {
  // Shows D1.flag.listen, D1.flag.trust-domain.
  const broker = await startTestIdentity(['-trust-domain=example.org', '--default-ttl', '1m'])
  const response = await fetch(`${broker.url}/v1/token`, {
    method: 'POST',
    headers: { authorization: `Bearer ${broker.brokerToken}`, 'content-type': 'application/json' },
    body: JSON.stringify(base),
  })
  const { spiffeId } = await json(response)
  assert.equal(spiffeId, 'spiffe://example.org/ns/default/agent/assistant/session/s1')
  assert.equal(await broker.stop(), 0)
  const bin = fileURLToPath(new URL('./bin/plat-identity.mjs', import.meta.url))
  const run = (...flags: string[]) => spawnSync(process.execPath, [bin, ...flags], { encoding: 'utf8' })
  const wrong = run('-issuer=', '-tls-cert=a', '-bootstrap-audience', 'plat-bootstrap')
  assert.equal(wrong.status, 1)
  assert.equal(wrong.stderr, '-issuer: must not be empty\n-tls-cert: needs -tls-key\n')
  const noDsn = run('-state-dsn-file', '/nowhere/dsn')
  assert.equal(noDsn.status, 1)
  assert.equal(noDsn.stderr.split('\n').at(-2), '-state-dsn-file /nowhere/dsn: is missing, empty or unreadable')
  assert.equal(run('-sign-alg', 'RS256').status, 2)
  const unknown = run('-sining-key', 'x')
  assert.equal(unknown.status, 2)
  assert.match(unknown.stderr, /unknown flag -sining-key; did you mean -signing-key\?/)
})

test('without flags the API is served on port 8081, and every answer of it says which build', async (t) => {
  // Shows D1.service.defaultPort.
  assert.equal(defaultSettings.listen, ':8081')
  assert.equal(identityFlags.listen.default, ':8081')
  const { identity } = await startTestBroker(t)
  const metrics = await (await fetch(`${identity.url}/metrics`)).text()
  assert.match(metrics, /^plat_build_info\{component="identity"/m)
})

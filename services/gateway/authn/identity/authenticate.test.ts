import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import { type IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { ephemeralSigner } from '@plat/keys'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { signJws } from '@plat/tokens'
import type { AuthenticatorConfig } from './index.ts'
import { BROKER_KEYS, startAuthenticator, wire } from './testing/fixture.ts'

const setUp = (t: TestContext, config: Partial<AuthenticatorConfig> = {}) => startAuthenticator(t, { config })

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

test('a valid token becomes an identity with its whole ancestry', async (t) => {
  // Shows D3.identity.jwksURL, D3.metric.plat_gateway_trusted_keys.
  const { issuer, answer, trusted } = await setUp(t)
  const caller = 'spiffe://plat.local/ns/team/agent/planner/session/p'
  const token = issuer.token({
    act: { sub: caller, act: { sub: 'user:ada' } },
    scope: 'tools:notes tools:web',
    plat_groups: 'staff',
    plat_parent_jti: 'p',
    plat_delegator_jti: 'd',
    plat_delegation_jtis: ['d', 'e'],
    plat_inherited_taints: 'web',
  })
  const identity = await answer({ authorization: `bEARER ${token}` })
  assert.ok('namespace' in identity)
  assert.deepEqual([identity.namespace, identity.agent, identity.session], ['default', 'assistant', 's1'])
  assert.deepEqual([identity.user, identity.groups, identity.tier, identity.tenant], ['ada', ['staff'], 'tier-0', ''])
  assert.deepEqual(identity.ancestors, ['p', 'd', 'e'])
  assert.deepEqual(identity.chain, ['team/planner'])
  assert.ok(identity.scopes.has('tools:web') && identity.scopes.size === 2)
  assert.deepEqual(identity.inheritedTaints, ['web'])
  assert.equal(trusted(), 1)
})

test('the keys of the broker are fetched again every jwksRefreshSeconds', async (t) => {
  // Shows D3.identity.jwksRefreshSeconds.
  const { clock, fetched } = await setUp(t, { jwksRefreshSeconds: 60 })
  const count = () => fetched.filter(({ url }) => url === BROKER_KEYS).length
  assert.equal(count(), 1)
  await clock.advance(30_000)
  assert.equal(count(), 1)
  await clock.advance(60_000)
  assert.ok(count() > 1)
})

test('a token seen twice before gives the same identity synchronously, until the cache is cleared', async (t) => {
  const { issuer, auth } = await setUp(t)
  const headers = bearer(issuer.token())
  auth.authenticate(wire({ ...headers }))
  const again = auth.authenticate(wire({ ...headers }))
  assert.ok(!(again instanceof Promise))
  assert.equal(auth.authenticate(wire({ ...headers })), again)
  auth.clear()
  assert.notEqual(auth.authenticate(wire({ ...headers })), again)
})

test('credentials are removed from the request, whatever the result', async (t) => {
  const { issuer, auth } = await setUp(t)
  for (const token of [issuer.token(), 'bad']) {
    const request = wire({ ...bearer(token), dpop: 'x', cookie: 'x', 'proxy-authorization': 'x', accept: 'a' })
    await auth.authenticate(request)
    assert.deepEqual(valuesOf(request.headers), ['a'])
  }
})

test('credentials are removed from the node:http request as well', async (t) => {
  const { issuer, auth } = await setUp(t)
  const request = new IncomingMessage(new Socket())
  Object.assign(request.headers, { ...bearer(issuer.token()), dpop: 'x', cookie: 'x', accept: 'a' })
  await auth.authenticate({ ...wire(request.headers), body: request })
  assert.deepEqual(valuesOf(request.headers), ['a'])
})

/** Headers with credentials have no value any more. */
function valuesOf(headers: IncomingHttpHeaders): unknown[] {
  return Object.values(headers).filter((value) => value !== undefined)
}

test('every kind of invalid token is a 401 that is counted for its reason and challenges', async (t) => {
  // Shows D3.metric.plat_gateway_auth_failures_total.
  const { issuer, answer, failed } = await setUp(t)
  // No trust domain is configured here, and an empty token is a missing credential.
  const cases = issuer.invalid().filter(({ name }) => name !== 'sub of another trust domain' && name !== 'empty')
  for (const { name, token, reason } of cases) {
    const denial = await answer(bearer(token))
    assert.ok('code' in denial, name)
    assert.equal(denial.code, 'unauthenticated', name)
    assert.match(
      String(denial.data?.challenge),
      /^Bearer realm="plat", error="invalid_token", error_description="[^"]+"$/,
    )
    // Characters outside the alphabet of a token are refused before parsing.
    assert.equal(failed.pop(), reason, name)
  }
})

test('a request without a token, with two, or with another scheme is refused', async (t) => {
  const { issuer, answer, failed } = await setUp(t)
  const missing = await answer({})
  assert.ok('code' in missing)
  assert.equal(missing.data?.challenge, 'Bearer realm="plat"')
  const token = issuer.token()
  for (const authorization of [
    `Bearer ${token}, Bearer ${token}`,
    `Basic ${token}`,
    'Bearer',
    `DPoP ${token}`,
    token,
  ]) {
    assert.ok('code' in (await answer({ authorization })), authorization)
  }
  // The fifth is an unbound token with the scheme for bound ones.
  assert.deepEqual(failed, ['missing', 'malformed', 'malformed', 'malformed', 'binding', 'malformed'])
})

test('a token that is bound to a key is refused as a bearer token', async (t) => {
  const { issuer, answer, failed } = await setUp(t)
  const denial = await answer(bearer(issuer.token({ cnf: { jkt: issuer.signer.kid } })))
  assert.ok('code' in denial)
  assert.equal(denial.code, 'dpop_required')
  assert.match(String(denial.data?.challenge), /^DPoP algs="EdDSA ES256", error="invalid_token"/)
  assert.deepEqual(failed, ['binding'])
})

test('the challenge names the resource metadata when the base URL is configured', async (t) => {
  const { answer } = await setUp(t, { resourceBaseURL: 'https://gateway.example/base/' })
  const denial = await answer({})
  assert.ok('code' in denial)
  assert.equal(
    denial.data?.challenge,
    'Bearer realm="plat", resource_metadata="https://gateway.example/.well-known/oauth-protected-resource/base/mcp/notes"',
  )
})

test('failures are logged at most once a second per reason, with no trace of the token', async (t) => {
  const { clock, answer, lines, issuer } = await setUp(t)
  const token = issuer.token({ aud: 'other' })
  for (let i = 0; i < 5; i++) await answer(bearer(token))
  await answer({})
  assert.equal(lines.length, 2)
  await clock.advance(1000)
  await answer(bearer(token))
  assert.deepEqual(lines[2]?.fields, { reason: 'audience', remote: '127.0.0.1:5', suppressed: 4 })
  assert.ok(!JSON.stringify(lines).includes(token.slice(0, 20)))
})

test('an identity expires when the verifier would reject its token', async (t) => {
  const { clock, issuer, answer } = await setUp(t)
  const identity = await answer(bearer(issuer.token()))
  assert.ok('expiresAt' in identity)
  assert.equal(identity.expiresAt, clock.now() + (900 + 30) * 1000)
})

test('without a configured issuer iss is not checked', async (t) => {
  // Shows D3.identity.issuer.
  const { issuer, answer } = await setUp(t, { issuer: '' })
  assert.ok('namespace' in (await answer(bearer(issuer.token({ iss: 'anybody' })))))
  const strict = await setUp(t)
  assert.ok('code' in (await strict.answer(bearer(strict.issuer.token({ iss: 'anybody' })))))
  assert.deepEqual(strict.failed, ['issuer'])
})

test('ML-DSA tokens are accepted with the keys of their files, and only when enabled', async (t) => {
  // Shows D3.identity.acceptMLDSA, D3.identity.mldsaPublicKeyFiles.
  const dir = tempFolder()
  const signer = ephemeralSigner('ML-DSA-65')
  const file = path.join(dir, 'pub.pem')
  await fs.writeFile(file, signer.publicKey.key.export({ format: 'pem', type: 'spki' }))
  const on = await setUp(t, { acceptMLDSA: true, mldsaPublicKeyFiles: [file] })
  assert.ok('namespace' in (await on.answer(bearer(signJws(signer, {}, on.issuer.claims())))))
  assert.ok('namespace' in (await on.answer(bearer(on.issuer.token()))), 'EdDSA stays accepted')
  assert.equal(on.trusted(), 2)
  const off = await setUp(t, { mldsaPublicKeyFiles: [file] })
  await off.answer(bearer(signJws(signer, {}, off.issuer.claims())))
  assert.deepEqual([off.failed, off.trusted()], [['signature'], 1])
  await assert.rejects(setUp(t, { publicKeyFiles: [file] }), /holds a key for ML-DSA-65; only keys for EdDSA/)
})

test('an unusable key file stops the start', async (t) => {
  const dir = tempFolder()
  await assert.rejects(setUp(t, { jwksURL: '', publicKeyFiles: [path.join(dir, 'none.pem')] }), /none\.pem: missing/)
})

test('key files are reread: new keys are accepted, removed ones rejected with their cached tokens', async (t) => {
  // Shows D3.identity.publicKeyFiles.
  const dir = tempFolder()
  const file = path.join(dir, 'pub.pem')
  const [first, second] = [ephemeralSigner(), ephemeralSigner()]
  const publish = (signer: typeof first) =>
    fs.writeFile(file, signer.publicKey.key.export({ format: 'pem', type: 'spki' }))
  await publish(first)
  const { clock, issuer, answer } = await setUp(t, { jwksURL: '', publicKeyFiles: [file] })
  const ask = async (signer: typeof first) =>
    'namespace' in (await answer(bearer(signJws(signer, {}, issuer.claims()))))
  assert.deepEqual([await ask(first), await ask(second)], [true, false])
  await publish(second)
  await until(
    () => ask(second),
    'the new key',
    () => clock.advance(1000),
  )
  assert.equal(await ask(first), false)
})

import assert from 'node:assert/strict'
import { createPrivateKey } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import type { AlgorithmName } from '@plat/keys'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { createRemoteJWKSet, jwtVerify, SignJWT } from 'jose'
import type { CredentialProvider } from '../exchange/provider.ts'
import type { IdentitySettings } from '../flags.ts'
import { base, json, jsonFile, startTestBroker } from '../testing/broker.ts'
import { newKeyPem } from '../testing/keys.ts'

const ISSUER = 'https://id.example'
async function keyFile(algorithm: AlgorithmName): Promise<string> {
  const file = path.join(tempFolder(), 'federation.pem')
  await fs.writeFile(file, newKeyPem(algorithm))
  return file
}

async function federated(t: TestContext, algorithm: AlgorithmName, more: Partial<IdentitySettings> = {}) {
  const federationKey = await keyFile(algorithm)
  return { federationKey, broker: await startTestBroker(t, { federationKey, federationIssuer: ISSUER, ...more }) }
}

test('clouds find the discovery document and the federation key, both computed from the key', async (t) => {
  // Shows D1.flag.federation-key.ES256, D1.flag.federation-key.RS256.
  // Shows D1.service.publishesDiscovery, D1.endpoint.openid-configuration, D1.endpoint.federation.jwks,
  // D1.discovery.issuer, D1.discovery.jwks_uri, D1.discovery.response_types_supported,
  // D1.discovery.subject_types_supported, D1.discovery.id_token_signing_alg_values_supported,
  // D1.discovery.claims_supported, D1.oidc.openid-configuration, D1.oidc.federation.jwks, D1.oidc.cached,
  // D1.flag.federation-key, D1.flag.federation-issuer, D1.jwks.federationKey, D1.limit.keyDocumentCaching.
  for (const algorithm of ['ES256', 'RS256'] as const) {
    const { broker } = await federated(t, algorithm)
    const { url } = broker.identity
    const discovery = await fetch(`${url}/.well-known/openid-configuration`)
    assert.equal(discovery.headers.get('cache-control'), 'public, max-age=300')
    assert.equal(
      await discovery.text(),
      `{"issuer":"${ISSUER}","jwks_uri":"${ISSUER}/.well-known/federation/jwks.json",` +
        '"response_types_supported":["id_token"],"subject_types_supported":["public"],' +
        `"id_token_signing_alg_values_supported":["${algorithm}"],` +
        '"claims_supported":["sub","aud","iss","iat","exp","nbf","jti","plat_ns","plat_agent","plat_session","plat_tier","scope"]}',
    )
    const jwks = await fetch(`${url}/.well-known/federation/jwks.json`)
    assert.equal(jwks.headers.get('content-type'), 'application/jwk-set+json')
    assert.equal(jwks.headers.get('cache-control'), 'public, max-age=300')
    const { keys } = await json(jwks)
    assert.ok(Array.isArray(keys))
    assert.deepEqual(
      keys.map(({ use, alg }) => [use, alg]),
      [['sig', algorithm]],
    )
    const all = await json(await fetch(`${url}/.well-known/jwks.json`))
    assert.ok(Array.isArray(all.keys))
    assert.deepEqual(
      all.keys.map(({ alg }) => alg),
      ['EdDSA', algorithm],
    )
    assert.deepEqual(all.keys[1], keys[0])
  }
})

test('the issuer is -issuer by default, and without a federation key there is none', async (t) => {
  // Shows D1.flag.federation-issuer, D1.oidc.issuerRoutes.
  const { broker } = await federated(t, 'ES256', { federationIssuer: '', issuer: 'http://127.0.0.1:8081/' })
  const document = await json(await fetch(`${broker.identity.url}/.well-known/openid-configuration`))
  assert.equal(document.issuer, 'http://127.0.0.1:8081/')
  assert.equal(document.jwks_uri, 'http://127.0.0.1:8081/.well-known/federation/jwks.json')
  const plain = await startTestBroker(t)
  for (const where of ['openid-configuration', 'federation/jwks.json']) {
    assert.equal((await fetch(`${plain.identity.url}/.well-known/${where}`)).status, 404)
  }
})

test('a token for a cloud is not accepted as a session token, even with the same issuer and audience', async (t) => {
  const { broker, federationKey } = await federated(t, 'ES256', { issuer: ISSUER })
  const { token } = await broker.mint()
  assert.equal((await broker.verify(token)).valid, true)
  const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
  const [key] = await federationKeys(broker.identity.url)
  const signer = createPrivateKey(await fs.readFile(federationKey, 'utf8'))
  const assertion = await new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid: String(key?.kid) }).sign(signer)
  const jwks = createRemoteJWKSet(new URL(`${broker.identity.url}/.well-known/federation/jwks.json`))
  await jwtVerify(assertion, jwks, { currentDate: new Date(broker.clock.now()), issuer: ISSUER })
  assert.equal((await broker.verify(assertion)).valid, false)
})

test('a new federation key is published at once, beside the one that clouds know', async (t) => {
  const { broker, federationKey } = await federated(t, 'ES256')
  await fs.writeFile(federationKey, newKeyPem('RS256'))
  const { url } = broker.identity
  await until(
    async () => (await federationKeys(url)).length === 2,
    'the second federation key',
    () => broker.clock.advance(10_000),
  )
  assert.deepEqual(
    (await federationKeys(url)).map(({ alg }) => alg),
    ['ES256', 'RS256'],
  )
  const { keys } = await json(await fetch(`${url}/.well-known/jwks.json`))
  assert.ok(Array.isArray(keys) && keys.length === 3)
  await broker.clock.advance(300_000)
  assert.deepEqual(
    (await federationKeys(url)).map(({ alg }) => alg),
    ['RS256', 'ES256'],
  )
})

test('a key or an issuer that no cloud could use refuses to start', async (t) => {
  const refused = async (algorithm: AlgorithmName, federationIssuer: string, why: RegExp) =>
    assert.rejects(
      startTestBroker(t, { federationKey: await keyFile(algorithm), federationIssuer }),
      why,
      federationIssuer,
    )
  await refused('EdDSA', ISSUER, /-federation-key: .* holds a key for EdDSA; clouds take ES256/)
  await refused('ML-DSA-44', ISSUER, /holds a key for ML-DSA-44/)
  for (const issuer of [
    'http://id.example',
    'plat-identity',
    'https://id.example/?a',
    'https://a@id.example',
    'ftp://x',
  ]) {
    await refused('ES256', issuer, /-federation-issuer .*must be an https URL/)
  }
  await refused('ES256', '', /^Error: -issuer plat-identity: with -federation-key/)
  await assert.rejects(startTestBroker(t, { federationIssuer: ISSUER }), /-federation-issuer: needs -federation-key/)
  await assert.rejects(
    startTestBroker(t, { federationKey: '/nowhere.pem', federationIssuer: ISSUER }),
    /cannot be read/,
  )
})

test('a provider that refuses the algorithm of the key causes a warning at the start', async (t) => {
  const provider = (name: string): CredentialProvider => ({
    name,
    problems: () => [],
    leastSeconds: () => 900,
    issue: async () => ({ kind: 'failed', reason: 'no cloud here' }),
  })
  const providers = ['azure-entra', 'aws-sts'].map(provider)
  const audiences = {
    reports: { provider: 'azure-entra' },
    more: { provider: 'azure-entra' },
    s3: { provider: 'aws-sts' },
    fine: { provider: 'aws-sts', maxTTLSeconds: 900 },
  }
  for (const [algorithm, warnings] of [
    ['ES256', 1],
    ['RS256', 0],
  ] as const) {
    const federationKey = await keyFile(algorithm)
    const exchangeConfig = await jsonFile({ audiences })
    const { lines } = await startTestBroker(t, {
      federationKey,
      federationIssuer: ISSUER,
      exchangeConfig,
      providers: () => providers,
    })
    assert.equal(lines.filter((line) => /azure-entra refuses ES256/.test(line)).length, warnings, algorithm)
    assert.equal(lines.filter((line) => /refuses/.test(line)).length, warnings, algorithm)
    assert.deepEqual(
      lines.flatMap((line) => /audiences\[\\"(\w+)\\"\]\.maxTTLSeconds 300: .* less than 900 s/.exec(line)?.[1] ?? []),
      ['reports', 'more', 's3'],
      lines.join('\n'),
    )
  }
})

async function federationKeys(url: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const { keys } = await json(await fetch(`${url}/.well-known/federation/jwks.json`))
  assert.ok(Array.isArray(keys))
  return keys
}

test('the federation key never replaces the signing key', async (t) => {
  const { broker } = await federated(t, 'RS256')
  const { body } = await broker.post('/v1/token', base)
  const [federation] = await federationKeys(broker.identity.url)
  assert.notEqual(body.kid, federation?.kid)
})

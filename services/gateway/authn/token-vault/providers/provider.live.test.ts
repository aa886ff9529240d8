import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemClock } from '@plat/core'
import { createDialer } from '@plat/http'
import { silentLog } from '@plat/process'
import { createAuthority } from '@plat/testkit/authority'
import { closed, listening, tempFolder } from '@plat/testkit/local'
import { keyOf } from '../../../testing/certified.ts'
import { type ProviderConfig, tokenVaultBlock } from '../config.ts'
import { Login } from '../flow/login.ts'
import { filled } from '../testing/filled.ts'
import { isRefusal } from './client.ts'
import { Provider } from './provider.ts'

/** The verifier of RFC 7636, appendix B. */
const CONSENT = {
  state: 'the-state',
  verifier: 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk',
  redirectURI: 'https://gateway.example/v1/connect/hub/callback',
}

/** One request to a token or revocation endpoint. */
interface ProviderRequest {
  readonly path: string
  readonly authorization: string | undefined
  readonly form: Readonly<Record<string, string>>
}

/** A scripted authorization server over TLS with its own CA. */
async function authorizationServer(t: TestContext) {
  const dir = tempFolder()
  const authority = await createAuthority({ name: 'authority', now: systemClock.now() })
  const leaf = await authority.issue({ name: 'hub', dnsNames: ['localhost'] })
  const requests: ProviderRequest[] = []
  const answers: Record<string, [number, object | string]> = {}
  const server = createServer({ cert: leaf.pem, key: keyOf(leaf) }, (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { url: path = '', headers } = request
      const form = Object.fromEntries(new URLSearchParams(Buffer.concat(chunks).toString()))
      if (request.method === 'POST') requests.push({ path, authorization: headers.authorization, form })
      const [status, body] = answers[path] ?? [404, {}]
      response
        .writeHead(status, { 'content-type': 'application/json' })
        .end(typeof body === 'string' ? body : JSON.stringify(body))
    })
  })
  const url = `https://localhost:${await listening(server)}`
  t.after(() => closed(server))
  answers['/.well-known/openid-configuration'] = [
    200,
    {
      issuer: url,
      authorization_endpoint: `${url}/authorize`,
      token_endpoint: `${url}/token`,
      revocation_endpoint: `${url}/revoke`,
      jwks_uri: `${url}/jwks`,
    },
  ]
  answers['/token'] = [
    200,
    { access_token: 'at', token_type: 'Bearer', expires_in: 3600, refresh_token: 'rt', scope: 'a b' },
  ]
  answers['/revoke'] = [200, {}]
  const file = async (name: string, text: string) => {
    await writeFile(join(dir, name), text)
    return join(dir, name)
  }
  const dialer = createDialer({ log: silentLog })
  t.after(() => dialer.close())
  const outside = { dialer, clock: systemClock, extraCA: null }
  const login = new Login(filled(tokenVaultBlock.schema.properties.login, { issuer: url, clientID: 'login' }), outside)
  const common = { clientSecretFile: await file('secret', 's3cret&=\n'), caFile: await file('ca.pem', authority.pem) }
  return { url, requests, answers, file, outside, common, login }
}

/** As the loader fills in what is left out. */
function providerOf(own: Partial<ProviderConfig>, outside: ConstructorParameters<typeof Provider>[2]): Provider {
  const schema = tokenVaultBlock.schema.properties.providers.items
  return new Provider(filled(schema, { name: 'hub', clientID: 'plat', ...own }), 'tokenVault.providers[0]', outside)
}

test('each preset uses the endpoints of its provider unless others are configured', async (t) => {
  // Shows D3.tokenVault.providers.preset.github, D3.tokenVault.providers.preset.microsoft,
  // D3.tokenVault.providers.preset.google, D3.tokenVault.providers.preset.salesforce, D3.tokenVault.providers.preset.slack.
  // Shows D3.tokenVault.providers.preset, D3.tokenVault.providers.tenant, D3.tokenVault.providers.domain,
  // D3.tokenVault.providers.authorizationURL, D3.tokenVault.providers.extraAuthParams, D3.tokenVault.providers.scopes.
  const { outside, login } = await authorizationServer(t)
  const consentAddress = async (own: Partial<ProviderConfig>) => {
    const to = await providerOf(own, { ...outside, login }).consentURL(CONSENT)
    assert.ok(!isRefusal(to))
    return to
  }
  const places: [Partial<ProviderConfig>, string][] = [
    [{ preset: 'github' }, 'https://github.com/login/oauth/authorize'],
    [{ preset: 'microsoft' }, 'https://login.microsoftonline.com/common/oauth2/v2.0/authorize'],
    [
      { preset: 'microsoft', tenant: 'acme.example' },
      'https://login.microsoftonline.com/acme.example/oauth2/v2.0/authorize',
    ],
    [{ preset: 'google' }, 'https://accounts.google.com/o/oauth2/v2/auth'],
    [{ preset: 'salesforce' }, 'https://login.salesforce.com/services/oauth2/authorize'],
    [
      { preset: 'salesforce', domain: 'acme.my.salesforce.com' },
      'https://acme.my.salesforce.com/services/oauth2/authorize',
    ],
    [{ preset: 'slack' }, 'https://slack.com/oauth/v2_user/authorize'],
    [
      { preset: 'github', authorizationURL: 'https://github.acme.example/login/oauth/authorize' },
      'https://github.acme.example/login/oauth/authorize',
    ],
  ]
  for (const [own, place] of places) {
    const { origin, pathname } = await consentAddress(own)
    assert.equal(origin + pathname, place)
  }
  const google = await consentAddress({
    preset: 'google',
    scopes: ['a', 'b'],
    extraAuthParams: { prompt: 'select_account' },
    resource: 'https://r.example',
  })
  assert.deepEqual(Object.fromEntries(google.searchParams), {
    access_type: 'offline',
    prompt: 'select_account',
    redirect_uri: CONSENT.redirectURI,
    state: CONSENT.state,
    scope: 'a b',
    resource: 'https://r.example',
    code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
    code_challenge_method: 'S256',
    client_id: 'plat',
    response_type: 'code',
  })
  const plain = await consentAddress({ preset: 'github', disablePKCE: true })
  assert.equal(plain.searchParams.has('code_challenge'), false)
})

test('a code, a refresh token and a revocation are sent with the client secret, PKCE and resource, trusting the configured CA', async (t) => {
  // Shows D3.tokenVault.providers.clientAuth.post, D3.tokenVault.providers.clientAuth.basic,
  // D3.tokenVault.providers.preset.generic, D3.tokenVault.providers.grant.authorization_code.
  // Shows D3.tokenVault.providers.issuer, D3.tokenVault.providers.clientAuth, D3.tokenVault.providers.disablePKCE, D3.tokenVault.providers.resource,
  // D3.tokenVault.providers.caFile, D3.tokenVault.providers.tokenURL, D3.tokenVault.providers.revocationURL.
  const server = await authorizationServer(t)
  const { url, requests, outside, login, common } = server
  const post = providerOf({ ...common, issuer: url, resource: 'https://r.example' }, { ...outside, login })
  const back = `code=the-code&state=the-state&iss=${encodeURIComponent(url)}`
  const tokens = await post.redeem(back, CONSENT)
  assert.ok(!isRefusal(tokens), JSON.stringify(tokens))
  assert.deepEqual([tokens.accessToken, tokens.refreshToken, tokens.scopes], ['at', 'rt', ['a', 'b']])
  await post.renew(tokens)
  assert.equal(await post.revoke(tokens), null)
  const client = { client_id: 'plat', client_secret: 's3cret&=' }
  const { redirectURI: redirect_uri, verifier: code_verifier } = CONSENT
  const resource = { resource: 'https://r.example' }
  assert.deepEqual(requests, [
    {
      path: '/token',
      authorization: undefined,
      form: { ...client, ...resource, grant_type: 'authorization_code', code: 'the-code', redirect_uri, code_verifier },
    },
    {
      path: '/token',
      authorization: undefined,
      form: { ...client, ...resource, grant_type: 'refresh_token', refresh_token: 'rt' },
    },
    { path: '/revoke', authorization: undefined, form: { ...client, token: 'rt', token_type_hint: 'refresh_token' } },
    { path: '/revoke', authorization: undefined, form: { ...client, token: 'at', token_type_hint: 'access_token' } },
  ])
  requests.length = 0
  server.answers['/elsewhere'] = [200, { access_token: 'at', token_type: 'Bearer' }]
  const addresses = { authorizationURL: `${url}/authorize`, tokenURL: `${url}/elsewhere`, revocationURL: `${url}/gone` }
  const basic = providerOf({ ...common, ...addresses, clientAuth: 'basic', disablePKCE: true }, { ...outside, login })
  const untold = await basic.redeem('code=the-code&state=the-state&iss=whoever', CONSENT)
  assert.ok(!isRefusal(untold), JSON.stringify(untold))
  assert.equal(untold.expiresAt, null)
  await basic.revoke(untold)
  // Without discovery a configured issuer must be in the redirect as well.
  const issuerInRedirect = providerOf({ ...common, ...addresses, issuer: url }, { ...outside, login })
  assert.ok(isRefusal(await issuerInRedirect.redeem('code=the-code&state=the-state', CONSENT)))
  assert.ok(isRefusal(await issuerInRedirect.redeem('code=the-code&state=the-state&iss=whoever', CONSENT)))
  const authorization = `Basic ${Buffer.from('plat:s3cret%26%3D').toString('base64')}`
  assert.deepEqual(requests, [
    { path: '/elsewhere', authorization, form: { grant_type: 'authorization_code', code: 'the-code', redirect_uri } },
    { path: '/gone', authorization, form: { token: 'at', token_type_hint: 'access_token' } },
  ])
})

test('reported errors contain no secret, no token and no free text of a provider', async (t) => {
  const server = await authorizationServer(t)
  const { url, outside, login, common, answers } = server
  const whys: string[] = []
  const tries = async (own: Partial<ProviderConfig>, query = 'code=the-code&state=the-state') => {
    const addresses = { authorizationURL: `${url}/authorize`, tokenURL: `${url}/token` }
    const tokens = await providerOf({ ...common, ...addresses, ...own }, { ...outside, login }).redeem(query, CONSENT)
    assert.ok(isRefusal(tokens))
    whys.push(tokens.why)
    return tokens
  }
  const trusted = await tries({ caFile: '' })
  assert.match(trusted.why, /did not respond \(tls\)/)
  assert.match(
    (await tries({ clientSecretFile: '/nowhere' })).why,
    /^tokenVault.providers\[0\].clientSecretFile is missing, empty or unreadable$/,
  )
  assert.equal(
    (await tries({}, 'error=access_denied&error_description=free-words&state=the-state')).code,
    'access_denied',
  )
  assert.equal((await tries({}, 'error=<script>&state=the-state')).code, null)
  assert.notEqual((await tries({}, 'code=the-code&state=another')).why, '')
  for (const [status, answer] of [
    [400, { error: 'invalid_grant', error_description: 'free-words the-code' }],
    [400, { error: 'free words' }],
    [500, { access_token: 'free-words' }],
    [200, { access_token: 'bad token', token_type: 'Bearer' }],
    [200, { access_token: 'at', token_type: 'mac' }],
    [200, { token_type: 'Bearer' }],
    [302, {}],
  ] as const) {
    answers['/token'] = [status, answer]
    await tries({})
  }
  assert.doesNotMatch(whys.join('\n'), /free-words|free words|the-code|s3cret|bad token|<script>/)
})

test('metadata that two parsers could read differently is refused', async (t) => {
  const { url, answers, outside, common } = await authorizationServer(t)
  const [, metadata] = answers['/.well-known/openid-configuration'] ?? assert.fail()
  const twice = JSON.stringify(metadata).replace('{', '{"issuer":"https://other.example",')
  answers['/.well-known/openid-configuration'] = [200, twice]
  const own = { issuer: url, clientID: 'login', caFile: common.caFile }
  const settings = filled(tokenVaultBlock.schema.properties.login, own)
  const to = await new Login(settings, outside).loginURL({ ...CONSENT, nonce: 'n' })
  assert.ok(isRefusal(to))
  assert.equal(to.why, 'the authorization server sent invalid JSON')
})

test('a login is discovered with its configured CA', async (t) => {
  // Shows D3.tokenVault.login.caFile.
  const { url, outside, common } = await authorizationServer(t)
  const flow = { ...CONSENT, nonce: 'n' }
  const settings = (own: object) =>
    filled(tokenVaultBlock.schema.properties.login, { issuer: url, clientID: 'login', ...own })
  const to = await new Login(settings({ caFile: common.caFile }), outside).loginURL(flow)
  assert.ok(!isRefusal(to), JSON.stringify(to))
  assert.equal(to.href.split('?')[0], `${url}/authorize`)
  assert.equal(to.searchParams.get('nonce'), 'n')
  assert.ok(isRefusal(await new Login(settings({}), outside).loginURL(flow)))
})

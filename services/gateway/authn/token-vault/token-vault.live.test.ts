import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { until } from '@plat/testkit/until'
import { PUBLIC, startProviders, VaultFixture } from './testing/fixture.ts'

const CONNECT = `${PUBLIC}/v1/connect/hub`

const providers = await startProviders()
after(() => providers.close())

test('a user without an account gets a link, connects an account, and the server receives only their token', async (t) => {
  // Shows D2.auth.perUser, D3.endpoint.connect, D3.tokenVault.enabled, D3.tokenVault.publicBaseURL, D3.tokenVault.login.issuer,
  // D3.tokenVault.login.clientID, D3.tokenVault.login.clientSecretFile, D3.tokenVault.providers.name, D3.tokenVault.providers.clientID,
  // D3.tokenVault.providers.clientSecretFile, D3.tokenVault.storePath, D3.tokenVault.keyURI.
  const fixture = await VaultFixture.start(t, providers)
  const before = await fixture.callAs('ada')
  assert.deepEqual([before.error, before.connectURL], ['upstream_credential', CONNECT])
  assert.match(before.reason, /your hub account is not connected: open https:\/\/gateway.example\/v1\/connect\/hub/)
  const done = await fixture.connect(fixture.browser(), 'ada', 'ada-at-hub')
  assert.match(done.text, /hub is connected[\s\S]*<strong>ada<\/strong>/)
  assert.equal((await fixture.callAs('ada')).as, 'ada-at-hub')
  assert.equal((await fixture.callAs('bob')).connectURL, CONNECT)
  await fixture.connect(fixture.browser(), 'bob', 'bob-at-hub')
  const both = await Promise.all(['ada', 'bob', 'ada', 'bob'].map((user) => fixture.callAs(user)))
  assert.deepEqual(
    both.map(({ as }) => as),
    ['ada-at-hub', 'bob-at-hub', 'ada-at-hub', 'bob-at-hub'],
  )
  const { body } = await fixture.admin('GET', '/v1/accounts?user=ada')
  assert.ok(typeof body === 'object' && body !== null && 'items' in body && Array.isArray(body.items))
  const [{ id: _, connectedAt: __, expiresAt: ___, ...listed }, ...others] = body.items
  assert.deepEqual(listed, { user: 'ada', realm: fixture.idp.url, provider: 'hub', scopes: ['openid', 'read'] })
  assert.deepEqual(others, [])
  const written = `${await fixture.written()}${await fixture.store()}`
  assert.match(written, /"action":"account.connected"/)
  for (const secret of fixture.seen()) assert.ok(!written.includes(secret), 'a token is in a file')
})

test('a session without a user, or with an unverified one, cannot use an account', async (t) => {
  const fixture = await VaultFixture.start(t, providers)
  await fixture.connect(fixture.browser(), 'ada', 'ada-at-hub')
  const anonymous = await fixture.callAs(null)
  assert.deepEqual([anonymous.error, anonymous.connectURL], ['upstream_credential', null])
  const unverified = await fixture.callAs('ada', { plat_principal_verified: undefined })
  assert.deepEqual([unverified.error, unverified.connectURL], ['upstream_credential', null])
  assert.match(unverified.reason, /it was not verified that the session acts for its user/)
})

test('a token is renewed before it ends, once for concurrent calls, and the next renewal uses the new refresh token', async (t) => {
  // Half of a life that is shorter than two minutes is used, so these tokens are renewed each second. The provider takes everything
  // back when a refresh token is shown twice.
  const fixture = await VaultFixture.start(t, providers, { clientID: 'vault-brief' })
  await fixture.connect(fixture.browser(), 'ada', 'ada-at-hub')
  const before = fixture.hub.lines().length
  const accountsWith = (word: string) =>
    fixture.hub
      .lines()
      .slice(before)
      .filter((line) => line.startsWith(word))
  for (let round = 1; round <= 2; round++) {
    await until(async () => {
      const called = await Promise.all(Array.from({ length: 8 }, () => fixture.callAs('ada')))
      assert.deepEqual([...new Set(called.map(({ as }) => as))], ['ada-at-hub'])
      return accountsWith('granted refresh_token').length >= round
    }, `renewal ${round}`)
  }
  assert.deepEqual(accountsWith('refused'), [])
})

test('a user can disconnect an account: the provider revokes the tokens, and calls require the account again', async (t) => {
  // Shows D3.tokenVault.providers.revocationURL.
  const fixture = await VaultFixture.start(t, providers)
  const browser = fixture.browser()
  await fixture.connect(browser, 'ada', 'ada-at-hub')
  assert.equal((await fixture.callAs('ada')).as, 'ada-at-hub')
  const [token = ''] = fixture.seen()
  const page = await fixture.login(browser, 'ada')
  assert.match(page.text, /Connect again[\s\S]*Disconnect/)
  const done = await browser.submit({ action: 'disconnect' })
  assert.match(done.text, /hub is disconnected/)
  assert.equal((await fixture.callAs('ada')).connectURL, CONNECT)
  await until(async () => (await fixture.askHub(token)) === 401, 'the provider to have taken the token back')
  assert.doesNotMatch(await fixture.store(), /"t":"kept"/, 'what was removed is written over')
})

test('a grant ended by the provider is removed, and the user is prompted again', async (t) => {
  const fixture = await VaultFixture.start(t, providers, { clientID: 'vault-brief' })
  await fixture.connect(fixture.browser(), 'ada', 'ada-who-ends')
  await fixture.hub.end('ada-who-ends')
  const isRemoved = async () => (await fixture.written()).includes('"action":"account.invalid_grant"')
  await until(isRemoved, 'the account to be removed', async () => {
    assert.equal((await fixture.callAs('ada')).connectURL, CONNECT)
  })
  assert.deepEqual((await fixture.admin('GET', '/v1/accounts')).body, { items: [], nextCursor: null })
})

test('revoking a user removes the accounts of that user only and prevents new ones', async (t) => {
  // Shows D3.tokenVault.keepOnKillSwitch.
  const fixture = await VaultFixture.start(t, providers)
  const browser = fixture.browser()
  await fixture.connect(browser, 'ada', 'ada-at-hub')
  await fixture.connect(fixture.browser(), 'bob', 'bob-at-hub')
  const revoked = await fixture.admin('POST', '/v1/revocations', { target: { user: 'ada' } })
  assert.equal(revoked.status, 201)
  await until(async () => (await fixture.written()).includes('"action":"account.revoked"'), 'the account to be removed')
  const { body } = await fixture.admin('GET', '/v1/accounts')
  assert.match(JSON.stringify(body), /"user":"bob"/)
  assert.doesNotMatch(JSON.stringify(body), /"user":"ada"/)
  assert.equal((await fixture.login(browser, 'ada')).status, 403)
  assert.equal((await fixture.callAs('bob')).as, 'bob-at-hub')
})

test('keepOnKillSwitch leaves the account in place for when the revocation is lifted', async (t) => {
  // Shows D3.tokenVault.keepOnKillSwitch.
  const fixture = await VaultFixture.start(t, providers, { vault: { keepOnKillSwitch: true } })
  await fixture.connect(fixture.browser(), 'ada', 'ada-at-hub')
  const { body } = await fixture.admin('POST', '/v1/revocations', { target: { user: 'ada' } })
  assert.ok(typeof body === 'object' && body !== null && 'id' in body)
  assert.notEqual((await fixture.callAs('ada')).error, null)
  await fixture.admin('DELETE', `/v1/revocations/${body.id}`)
  assert.equal((await fixture.callAs('ada')).as, 'ada-at-hub')
})

test('an admin sees accounts without tokens, and removes one', async (t) => {
  const fixture = await VaultFixture.start(t, providers)
  await fixture.connect(fixture.browser(), 'ada', 'ada-at-hub')
  const { body } = await fixture.admin('GET', '/v1/accounts?provider=hub')
  const id = /"id":"([^"]+)"/.exec(JSON.stringify(body))?.[1]
  assert.equal((await fixture.admin('DELETE', `/v1/accounts/${id}`)).status, 204)
  assert.equal((await fixture.admin('DELETE', `/v1/accounts/${id}`)).status, 404)
  assert.equal((await fixture.callAs('ada')).connectURL, CONNECT)
  assert.match(await fixture.written(), /"action":"account.removed".*"by":"token:admin"/)
})

test('a token that the server does not accept leads to the page that renews it', async (t) => {
  const fixture = await VaultFixture.start(t, providers)
  await fixture.connect(fixture.browser(), 'ada', 'ada-who-leaves')
  await fixture.hub.end('ada-who-leaves')
  const called = await fixture.callAs('ada')
  assert.deepEqual([called.error, called.connectURL], ['upstream_credential', CONNECT])
  assert.match(called.reason, /the server does not accept your hub account/)
})

test('accounts survive a restart, also under a new key while the old one is listed; without it the gateway does not start', async (t) => {
  // Shows D3.tokenVault.keyURI, D3.tokenVault.retiredKeyURIs.
  const fixture = await VaultFixture.start(t, providers)
  await fixture.connect(fixture.browser(), 'ada', 'ada-at-hub')
  await fixture.restart({})
  assert.equal((await fixture.callAs('ada')).as, 'ada-at-hub')
  const keyURI = await fixture.file('next.key', randomBytes(32).toString('hex'))
  await assert.rejects(fixture.restart({ keyURI }), (error) => {
    assert.ok(error instanceof Error)
    assert.match(error.message, /tokenVault.retiredKeyURIs: 1 accounts are sealed with a key that is not listed/)
    return true
  })
  const old = { retiredKeyURIs: [fixture.keyURI] }
  await fixture.restart({ keyURI, ...old })
  assert.equal((await fixture.callAs('ada')).as, 'ada-at-hub')
  // It was sealed anew when it was used, so the old key can go.
  await fixture.restart({ keyURI })
  assert.equal((await fixture.callAs('ada')).as, 'ada-at-hub')
})

test('without a vault a per-user server refuses every call, and the connect pages do not exist', async (t) => {
  const fixture = await VaultFixture.start(t, providers, { vault: { enabled: false } })
  const called = await fixture.callAs('ada')
  assert.deepEqual([called.error, called.connectURL], ['upstream_credential', null])
  assert.match(called.reason, /tokenVault.enabled is off/)
  assert.equal((await fetch(`${fixture.url}/v1/connect/hub`)).status, 404)
})

test('the endpoints and user claim of the login can be configured', async (t) => {
  // Shows D3.tokenVault.login.authorizationURL, D3.tokenVault.login.tokenURL, D3.tokenVault.login.jwksURL,
  // D3.tokenVault.login.usernameClaim, D3.tokenVault.userRealm.
  const { url } = providers.idp
  const addresses = { authorizationURL: `${url}/auth`, tokenURL: `${url}/token`, jwksURL: `${url}/jwks` }
  const fixture = await VaultFixture.start(t, providers, {
    clientID: 'vault-basic',
    provider: { clientAuth: 'basic' },
    login: { ...addresses, usernameClaim: 'nick' },
    vault: { userRealm: 'people' },
  })
  const done = await fixture.connect(fixture.browser(), 'ada', 'ada-at-hub')
  assert.match(done.text, /<strong>nick-of-ada<\/strong>/)
  assert.equal((await fixture.callAs('nick-of-ada')).as, 'ada-at-hub')
  assert.match(JSON.stringify((await fixture.admin('GET', '/v1/accounts')).body), /"realm":"people"/)
  // Whose names these are is part of whose account it is.
  await fixture.restart({ userRealm: 'others' })
  assert.equal((await fixture.callAs('nick-of-ada')).connectURL, CONNECT)
})

test('without paths and addresses the accounts are beside the ledger, and pages are at the public address of the gateway', async (t) => {
  // Shows D3.default.computed.tokenVault.storePath, D3.default.computed.tokenVault.publicBaseURL,
  // D3.default.computed.tokenVault.userRealm.
  const fixture = await VaultFixture.start(t, providers, {
    identity: { resourceBaseURL: PUBLIC },
    vault: { storePath: '', publicBaseURL: '' },
  })
  assert.equal((await fixture.callAs('ada')).connectURL, CONNECT)
  await fixture.connect(fixture.browser(), 'ada', 'ada-at-hub')
  assert.equal((await fixture.callAs('ada')).as, 'ada-at-hub')
  assert.match(await readFile(join(fixture.dir, 'audit.jsonl.vault.jsonl'), 'utf8'), /"t":"kept"/)
  const { body } = await fixture.admin('GET', '/v1/accounts')
  assert.ok(JSON.stringify(body).includes(`"realm":"${providers.idp.url}"`))
})

test('an ID token with a foreign signature is refused', async (t) => {
  // Shows D3.tokenVault.login.jwksURL.
  const { idp, hub } = providers
  const addresses = { authorizationURL: `${idp.url}/auth`, tokenURL: `${idp.url}/token`, jwksURL: `${hub.url}/jwks` }
  const fixture = await VaultFixture.start(t, providers, { login: addresses })
  const page = await fixture.login(fixture.browser(), 'ada')
  assert.equal(page.status, 502)
  assert.match(page.text, /Nothing was connected/)
})

test('a user who is revoked during the consent cannot connect an account', async (t) => {
  const fixture = await VaultFixture.start(t, providers)
  const browser = fixture.browser()
  const isBack = ({ pathname }: URL) => pathname.endsWith('/hub/callback')
  const { url } = await fixture.connect(browser, 'ada', 'ada-at-hub', isBack)
  assert.equal((await fixture.admin('POST', '/v1/revocations', { target: { user: 'ada' } })).status, 201)
  assert.equal((await browser.open(url)).status, 403)
  const { body } = await fixture.admin('GET', '/v1/accounts')
  assert.doesNotMatch(JSON.stringify(body), /"user":"ada"/)
})

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { until } from '@plat/testkit/until'
import { startVouchingProviders, VaultFixture } from './testing/fixture.ts'

const providers = await startVouchingProviders()
after(() => providers.close())

const grant = { grant: 'id-jag', scopes: ['read'] }

test('with grant id-jag the identity provider vouches for a user at the hub repeatedly after one login and confirmation', async (t) => {
  // Shows D3.tokenVault.providers.grant.id-jag.
  // Shows D3.tokenVault.providers.idJag.resource, D3.tokenVault.providers.grant, D3.tokenVault.providers.idJag.audience, D3.tokenVault.providers.idJag.scopes,
  // D3.tokenVault.providers.idJag.idpTokenURL, D3.tokenVault.providers.idJag.idpClientID, D3.tokenVault.login.scopes,
  // D3.tokenVault.providers.idJag.idpClientSecretFile.
  const { idp, hub } = providers
  const fixture = await VaultFixture.start(t, providers, {
    clientID: 'vault-brief',
    provider: {
      ...grant,
      clientAuth: 'post',
      idJag: {
        idpTokenURL: `${idp.url}/token`,
        audience: hub.url,
        scopes: ['read'],
        resource: 'https://notes.example/mcp',
      },
    },
    login: { scopes: ['offline_access'] },
  })
  const browser = fixture.browser()
  await fixture.login(browser, 'ada')
  const done = await browser.submit({ action: 'connect' })
  assert.match(done.text, /hub is connected/)
  assert.deepEqual(
    done.way.filter((address) => address.startsWith(hub.url)),
    [],
    'no further redirect of the browser',
  )
  assert.equal((await fixture.callAs('ada')).as, 'ada')
  assert.equal((await fixture.callAs('bob')).connectURL, 'https://gateway.example/v1/connect/hub')
  const granted = () =>
    hub.lines().filter((line) => line.startsWith('granted urn:ietf:params:oauth:grant-type:jwt-bearer'))
  await until(
    async () => granted().length > 2,
    () => `more tokens: ${hub.lines()} ${idp.lines()}`,
    async () => assert.equal((await fixture.callAs('ada')).as, 'ada'),
  )
  assert.ok(idp.lines().includes('granted refresh_token'), 'the login was renewed')
  assert.ok(hub.lines().includes('believed ada at https://notes.example/mcp'))
})

test('a removed user of the identity provider is prompted to connect again', async (t) => {
  const fixture = await VaultFixture.start(t, providers, {
    clientID: 'vault-brief',
    provider: { ...grant, idJag: { audience: providers.hub.url } },
    login: { scopes: ['offline_access'] },
  })
  const browser = fixture.browser()
  await fixture.login(browser, 'ada-who-leaves')
  await browser.submit({ action: 'connect' })
  assert.equal((await fixture.callAs('ada-who-leaves')).as, 'ada-who-leaves')
  await providers.idp.end('ada-who-leaves')
  await until(async () => (await fixture.callAs('ada-who-leaves')).connectURL !== null, 'the account to end')
  assert.deepEqual((await fixture.admin('GET', '/v1/accounts')).body, { items: [], nextCursor: null })
})

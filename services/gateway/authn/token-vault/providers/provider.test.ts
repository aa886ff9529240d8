import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import type { Dialer } from '@plat/http'
import { type ProviderConfig, tokenVaultBlock } from '../config.ts'
import { Login } from '../flow/login.ts'
import { filled } from '../testing/filled.ts'
import { isRefusal } from './client.ts'
import { Provider } from './provider.ts'

const ISSUER = 'https://login.example'
const { properties } = tokenVaultBlock.schema

/** A dialer with a fixed response and a request counter. */
function answering(body: object): Pick<Dialer, 'fetchBytes'> & { requests: number } {
  return {
    requests: 0,
    async fetchBytes() {
      this.requests++
      return { status: 200, headers: { 'content-type': 'application/json' }, bytes: Buffer.from(JSON.stringify(body)) }
    },
  }
}

function providerOf(own: Partial<ProviderConfig>, dialer: Pick<Dialer, 'fetchBytes'>): Provider {
  const outside = { dialer, clock: new TestClock(), extraCA: null }
  const login = new Login(filled(properties.login, { issuer: ISSUER, clientID: 'login' }), outside)
  const config = { name: 'hub', clientID: 'gateway', ...own }
  return new Provider(filled(properties.providers.items, config), 'tokenVault.providers[0]', { ...outside, login })
}

test('tokens are for the servers and namespaces that the provider lists, and for no others', () => {
  const { serves, isFor } = Provider.prototype
  const dialer = answering({})
  const listed = providerOf({ allowedServers: ['default/notes', 'tools/*'], allowedNamespaces: ['default'] }, dialer)
  for (const server of ['default/notes', 'tools/any']) assert.ok(serves.call(listed, server), server)
  for (const server of ['default/other', 'other/notes', 'notes', '']) assert.ok(!serves.call(listed, server), server)
  assert.ok(isFor.call(listed, 'default') && !isFor.call(listed, 'other'))
  const open = providerOf({ allowAnyServer: true }, dialer)
  assert.ok(open.serves('other/notes') && open.isFor('other'))
  assert.ok(!providerOf({}, dialer).serves('default/notes'))
})

test('concurrent requests share one discovery', async () => {
  const dialer = answering({
    issuer: ISSUER,
    authorization_endpoint: `${ISSUER}/authorize`,
    token_endpoint: `${ISSUER}/token`,
  })
  const provider = providerOf({ issuer: ISSUER }, dialer)
  const consent = {
    state: 's',
    verifier: 'v'.repeat(43),
    redirectURI: 'https://gateway.example/v1/connect/hub/callback',
  }
  const urls = await Promise.all(Array.from({ length: 5 }, () => provider.consentURL(consent)))
  assert.ok(urls.every((url) => !isRefusal(url)))
  assert.equal(dialer.requests, 1)
})

test('the lifetime of a token is capped at ten years', async () => {
  const dialer = answering({ access_token: 'a', token_type: 'bearer', expires_in: 1e300 })
  const provider = providerOf({ authorizationURL: `${ISSUER}/authorize`, tokenURL: `${ISSUER}/token` }, dialer)
  const consent = {
    state: 's',
    verifier: 'v'.repeat(43),
    redirectURI: 'https://gateway.example/v1/connect/hub/callback',
  }
  const tokens = await provider.redeem('code=c&state=s', consent)
  assert.ok(!isRefusal(tokens))
  assert.equal(tokens.expiresAt, tokens.obtainedAt + 10 * 365 * 86_400_000)
})

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { systemClock } from '@plat/core'
import { thumbprint } from '@plat/keys'
import * as oauth from 'oauth4webapi'
import * as openid from 'openid-client'
import { claimsIn, jsonFile, startTestBroker } from '../testing/broker.ts'
import type { CredentialProvider } from './provider.ts'

const GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange'
const JWT = 'urn:ietf:params:oauth:token-type:jwt'

const provider: CredentialProvider = {
  name: 'aws-sts',
  problems: () => [],
  leastSeconds: () => 0,
  issue: async () => ({ kind: 'credential', accessToken: 'cloud', expiresInSeconds: 900 }),
}

/** These clients make proofs in the machine's time, so the broker lives in it too. */
async function setUp(t: TestContext) {
  const rule = { allowedScopes: ['tools:a'], allowedNamespaces: ['default'] }
  const exchangeConfig = await jsonFile({ audiences: { reports: rule, cloud: { ...rule, provider: 'aws-sts' } } })
  return startTestBroker(t, { exchangeConfig, providers: () => [provider], clock: systemClock })
}

test('openid-client discovers the broker and completes an exchange and a delegation', async (t) => {
  const { identity, mint } = await setUp(t)
  const config = await openid.discovery(new URL(identity.url), 'agent', undefined, openid.None(), {
    algorithm: 'oauth2',
    execute: [openid.allowInsecureRequests],
  })
  const subject = await mint({ scopes: ['tools:a', 'agents:helper'], user: 'ada' })
  const exchanged = await openid.genericGrantRequest(config, GRANT, {
    subject_token: subject.token,
    subject_token_type: JWT,
    audience: 'reports',
    scope: 'tools:a',
  })
  assert.deepEqual([exchanged.token_type, exchanged.expires_in, exchanged.scope], ['bearer', 300, 'tools:a'])
  assert.equal(claimsIn(exchanged.access_token).aud, 'reports')
  const actor = await mint({ agent: 'helper', session: 'h1' })
  const delegated = await openid.genericGrantRequest(config, GRANT, {
    subject_token: subject.token,
    subject_token_type: JWT,
    actor_token: actor.token,
    actor_token_type: JWT,
  })
  assert.equal(claimsIn(delegated.access_token).sub, actor.spiffeId)
  const refused = openid.genericGrantRequest(config, GRANT, {
    subject_token: subject.token,
    subject_token_type: JWT,
    audience: 'unlisted',
  })
  await assert.rejects(refused, { code: 'OAUTH_RESPONSE_BODY_ERROR', error: 'invalid_target', status: 400 })
})

test('oauth4webapi completes an exchange for a cloud credential with its own DPoP proofs', async (t) => {
  const { identity, mint } = await setUp(t)
  const issuer = new URL(identity.url)
  const insecure = { [oauth.allowInsecureRequests]: true }
  const discovered = await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...insecure })
  const server = await oauth.processDiscoveryResponse(issuer, discovered)
  const client = { client_id: 'agent' }
  const exchange = async (pair: { publicKey: CryptoKey; privateKey: CryptoKey }, proven: boolean) => {
    const { kty = '', crv = '', x = '', y } = await crypto.subtle.exportKey('jwk', pair.publicKey)
    const dpopJkt = thumbprint({ kty, crv, x, ...(y === undefined ? {} : { y }) })
    const { token } = await mint({ scopes: ['tools:a'], dpopJkt })
    const parameters = new URLSearchParams({ subject_token: token, subject_token_type: JWT, audience: 'cloud' })
    const more = proven ? { ...insecure, DPoP: oauth.DPoP({}, pair) } : insecure
    const response = await oauth.genericTokenEndpointRequest(server, client, oauth.None(), GRANT, parameters, more)
    return oauth.processGenericTokenEndpointResponse(server, client, response)
  }
  const badProof = { code: 'OAUTH_RESPONSE_BODY_ERROR', error: 'invalid_dpop_proof' }
  const pair = await oauth.generateKeyPair('ES256')
  const { access_token, expires_in } = await exchange(pair, true)
  assert.deepEqual([access_token, expires_in], ['cloud', 900])
  await assert.rejects(exchange(pair, false), badProof)
  // It names the algorithm of RFC 9864, which the contract's EdDSA is not.
  await assert.rejects(exchange(await oauth.generateKeyPair('Ed25519'), true), badProof)
})

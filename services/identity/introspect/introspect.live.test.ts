import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testProver } from '@plat/testkit/dpop'
import { BROKER_TOKEN, claimsIn, json, startTestBroker } from '../testing/broker.ts'

test('introspection answers the claims of an active token of any audience', async (t) => {
  const { mint, post, bind, identity, clock } = await startTestBroker(t)
  const introspect = async (token: string) => (await post('/v1/introspect', { token })).body
  const { token } = await mint({ user: 'ada', scopes: ['tools:a'] })
  assert.deepEqual(await introspect(token), { ...claimsIn(token), active: true, token_type: 'Bearer' })
  const elsewhere = await mint({ audience: 'reports' })
  assert.equal((await introspect(elsewhere.token)).active, true)
  const prover = testProver({ clock })
  await bind(token, prover.proof(`${identity.url}/v1/token/bind`, token))
  const bound = await introspect(token)
  assert.deepEqual([bound.token_type, bound.cnf], ['DPoP', { jkt: prover.jkt }])
  await clock.advance(900_000)
  for (const bad of [token, 'x', `${elsewhere.token}x`]) assert.deepEqual(await introspect(bad), { active: false })
})

test('introspection requires a form, the broker token, and the token to inspect', async (t) => {
  const { mint, post, identity } = await startTestBroker(t)
  const { token } = await mint()
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  const body = new URLSearchParams({ token, token_type_hint: 'access_token' }).toString()
  assert.equal((await post('/v1/introspect', body, form)).body.active, true)
  assert.equal((await post('/v1/introspect', body, { ...form, authorization: 'Bearer x' })).status, 401)
  const without = await post('/v1/introspect', {})
  assert.deepEqual([without.status, without.body.error], [400, 'invalid_request'])
  const url = `${identity.url}/v1/introspect?token=${token}`
  const inUrl = await fetch(url, { method: 'POST', headers: { ...form, authorization: `Bearer ${BROKER_TOKEN}` } })
  assert.equal(inUrl.status, 400)
})

test('the server metadata is served at the URL that it names', async (t) => {
  const read = async (url: string) => {
    const response = await fetch(`${url}/.well-known/oauth-authorization-server`)
    assert.equal(response.headers.get('cache-control'), 'no-store')
    return json(response)
  }
  const { identity } = await startTestBroker(t)
  const metadata = await read(identity.url)
  assert.deepEqual(
    [metadata.issuer, metadata.token_endpoint, metadata.introspection_endpoint],
    [identity.url, `${identity.url}/v1/exchange`, `${identity.url}/v1/introspect`],
  )
  assert.equal((await fetch(String(metadata.jwks_uri))).status, 200)
  const behind = await startTestBroker(t, { publicUrl: 'https://id.example' })
  assert.equal((await read(behind.identity.url)).issuer, 'https://id.example')
})

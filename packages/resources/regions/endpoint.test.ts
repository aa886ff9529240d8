import assert from 'node:assert/strict'
import { test } from 'node:test'
import { endpointFault, jurisdictionOfEndpoint } from './endpoint.ts'

test('the region in the URL of an endpoint comes before what is stated for its origin; a neighbour needs neither', () => {
  const login = 'https://login.example'
  for (const [url, stated, jurisdiction] of [
    [`${login}/token`, {}, ''],
    [`${login}/token`, { [login]: 'DE' }, 'DE'],
    [`${login}:8443/token`, { [login]: 'DE' }, ''],
    ['https://login.example.evil/token', { [login]: 'DE' }, ''],
    ['https://__proto__/token', {}, ''],
    ['https://cognito-idp.eu-central-1.amazonaws.com/pool/.well-known/jwks.json', {}, 'DE'],
    ['https://pool.auth.us-west-2.amazoncognito.com/oauth2/token', {}, 'US'],
    ['http://127.0.0.1:8081/jwks', {}, null],
    ['http://[::1]/jwks', {}, null],
    ['http://localhost/jwks', { 'http://localhost': 'FR' }, 'FR'],
    ['http://plat-broker.plat-system.svc:8081/jwks', {}, null],
    ['http://plat-broker.plat-system.svc.cluster.local/jwks', {}, null],
    ['http://evil.svc.example/jwks', {}, ''],
    ['http://127.0.0.1.example/jwks', {}, ''],
  ] as const)
    assert.equal(jurisdictionOfEndpoint(new URL(url), stated), jurisdiction, url)
})

test('an entry must be an origin, and not contradict the region that it names', () => {
  assert.equal(endpointFault('https://login.example', 'DE'), null)
  assert.equal(endpointFault('https://sts.eu-central-1.amazonaws.com', 'EU'), null)
  for (const [origin, message] of [
    ['https://login.example/', /^is not an origin: write https:\/\/login\.example$/],
    ['https://Login.example:443', /^is not an origin: write https:\/\/login\.example$/],
    ['login.example', /^is not an origin: write it as/],
    ['ftp://login.example', /^is not an origin: write it as/],
    ['https://sts.us-east-1.amazonaws.com', /processed in US/],
  ] as const)
    assert.match(String(endpointFault(origin, 'DE')), message)
})

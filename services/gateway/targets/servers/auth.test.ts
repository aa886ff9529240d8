import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AuthEntry } from '@plat/resources/rendered'
import { authOf } from './auth.ts'
import { decodeUpstreams } from './decode.ts'

const credentialKey = 'default.notes'
const tokenURL = 'https://login.example/token'
const url = 'https://notes.example/mcp'

test('each type of auth is read with its required members only', () => {
  const grant = { tokenURL, audience: null, resource: null, scopes: [] }
  const good: [AuthEntry, object][] = [
    [{ type: 'none', credentialKey }, { type: 'none' }],
    [
      { type: 'bearerSecret', credentialKey },
      { type: 'bearerSecret', credentialKey },
    ],
    [
      { type: 'headerSecret', credentialKey, headerName: 'X-Key' },
      { type: 'headerSecret', credentialKey, headerName: 'X-Key' },
    ],
    [
      { type: 'mtls', credentialKey },
      { type: 'mtls', credentialKey },
    ],
    [
      { type: 'tokenExchange', tokenExchange: { audience: 'a' } },
      { type: 'tokenExchange', audience: 'a' },
    ],
    [
      { type: 'oauthClientCredentials', credentialKey, oauth: { tokenURL } },
      { type: 'oauthClientCredentials', credentialKey, oauth: grant },
    ],
    [
      {
        type: 'oauthClientCredentials',
        credentialKey,
        oauth: { tokenURL, audience: '', resource: url, scopes: ['r'] },
      },
      { type: 'oauthClientCredentials', credentialKey, oauth: { ...grant, resource: url, scopes: ['r'] } },
    ],
  ]
  for (const [entry, expected] of good) assert.deepEqual(authOf(entry, url), expected)
})

test('an invalid entry refuses the file, naming the member', () => {
  const bad: [AuthEntry, string][] = [
    [{ type: 'bearerSecret' }, '.credentialKey: Required value'],
    [{ type: 'headerSecret', credentialKey }, '.headerName: Required value'],
    [{ type: 'oauthClientCredentials', credentialKey }, '.oauth: Required value'],
    [{ type: 'tokenExchange' }, '.tokenExchange: Required value'],
    [{ type: 'oauthClientCredentials', credentialKey, oauth: { tokenURL: 'http://[x' } }, '.oauth.tokenURL: not a URL'],
    ...['Host', 'CONTENT-LENGTH', 'Transfer-Encoding', 'Mcp-Session-Id', 'traceparent'].map(
      (headerName): [AuthEntry, string] => [
        { type: 'headerSecret', credentialKey, headerName },
        '.headerName: the gateway writes this header itself',
      ],
    ),
  ]
  for (const [auth, problem] of bad) {
    assert.equal(authOf(auth, url), problem)
    const entry = { url, namespaces: [], implicit: false, trust: 'trusted', dataClass: 'internal', auth }
    const file = { version: 1, servers: { 'a/b': entry }, bindings: {}, agentWeb: {} }
    const decoded = decodeUpstreams(Buffer.from(JSON.stringify(file)))
    assert.deepEqual(decoded, { ok: false, problems: [`servers[a/b].auth${problem}`] })
  }
  assert.equal(
    authOf({ type: 'mtls', credentialKey }, 'http://notes.example/mcp'),
    '.type: mtls needs a url that begins with https://',
  )
})

test('a credential key with two different auths refuses the file', () => {
  const entry = (auth: AuthEntry) => ({
    url,
    namespaces: [],
    implicit: false,
    trust: 'trusted',
    dataClass: 'internal',
    auth,
  })
  const decoded = (...auths: AuthEntry[]) => {
    const servers = Object.fromEntries(auths.map((auth, index) => [`a/s${index}`, entry(auth)]))
    return decodeUpstreams(Buffer.from(JSON.stringify({ version: 1, servers, bindings: {}, agentWeb: {} })))
  }
  const bearer: AuthEntry = { type: 'bearerSecret', credentialKey }
  assert.equal(decoded(bearer, bearer).ok, true)
  assert.deepEqual(decoded(bearer, { type: 'headerSecret', credentialKey, headerName: 'X-Key' }), {
    ok: false,
    problems: ['servers[a/s1].auth.credentialKey: servers[a/s0] has the same one with another auth'],
  })
})

test('a credential key is a file name without path', () => {
  for (const key of ['../x', 'a/b', '.hidden', '', 'a\\b', 'a\nb']) {
    const auth = { type: 'bearerSecret', credentialKey: key }
    const entry = { url, namespaces: [], implicit: false, trust: 'trusted', dataClass: 'internal', auth }
    const file = { version: 1, servers: { 'a/b': entry }, bindings: {}, agentWeb: {} }
    assert.equal(decodeUpstreams(Buffer.from(JSON.stringify(file))).ok, false, JSON.stringify(key))
  }
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ConfigBlock, checkConfig, formatProblem } from '@plat/config'
import { identityBlock } from '../identity/config.ts'
import { tokenVaultBlock } from './config.ts'

const blocks: readonly ConfigBlock[] = [identityBlock, tokenVaultBlock]

const hub = {
  name: 'hub',
  clientID: 'plat',
  issuer: 'https://hub.example',
  allowedServers: ['default/notes'],
}

const good = {
  enabled: true,
  keyURI: '/keys/vault',
  publicBaseURL: 'https://gateway.example',
  login: { issuer: 'https://login.example', clientID: 'plat' },
  providers: [hub],
}

function problems(vault: object, identity: object = {}): string[] {
  const file = { identity: { publicKeyFiles: ['/pub.pem'], ...identity }, tokenVault: vault }
  return checkConfig(JSON.stringify(file), blocks, { exists: () => true }).problems.map(formatProblem)
}

const ofProvider = (more: object) => problems({ ...good, providers: [{ ...hub, ...more }] })

test('a complete vault is valid, and a disabled one may be incomplete', () => {
  assert.deepEqual(problems(good), [])
  assert.deepEqual(problems({ ...good, publicBaseURL: '' }, { resourceBaseURL: 'https://gateway.example' }), [])
  assert.deepEqual(problems({ keyURI: 'kms://aws/x', providers: [{ name: 'hub' }] }), [])
})

test('all missing fields are reported at once', () => {
  const text = problems({ enabled: true }).join('\n')
  for (const path of ['keyURI', 'providers', 'login.issuer', 'login.clientID', 'publicBaseURL']) {
    assert.match(text, new RegExp(`^tokenVault.${path}: .*required`, 'm'))
  }
})

test('a provider needs allowed servers, a client and endpoints', () => {
  // Shows D3.tokenVault.providers.allowAnyServer.
  const cases: [object, RegExp | null][] = [
    [{ allowedServers: [] }, /providers\[0\].allowedServers: is required unless allowAnyServer is set/],
    [{ allowedServers: [], allowAnyServer: true }, null],
    [{ allowedServers: ['notes'] }, /providers\[0\].allowedServers\[0\]: must read <namespace>\/<name>/],
    [{ allowedServers: ['team-*/*'] }, null],
    [{ clientID: '' }, /providers\[0\].clientID: is required/],
    [{ issuer: '' }, /providers\[0\]: preset generic needs an issuer, or authorizationURL and tokenURL/],
    [{ issuer: '', tokenURL: 'https://hub.example/token' }, /preset generic needs an issuer/],
    [{ issuer: '', tokenURL: 'https://a.example/t', authorizationURL: 'https://a.example/a' }, null],
    [{ issuer: '', preset: 'github' }, null],
    [{ name: 'callback' }, /providers\[0\].name/],
    [{ name: 'Hub' }, /providers\[0\].name/],
    [{ extraAuthParams: { state: 'x', prompt: 'consent' } }, /extraAuthParams.state: is set by the gateway/],
    [{ preset: 'microsoft', tenant: 'a/b' }, /providers\[0\].tenant/],
    [{ preset: 'salesforce', domain: 'evil.example/x?' }, /providers\[0\].domain/],
    [{ grant: 'id-jag' }, /providers\[0\].clientSecretFile: is required with grant id-jag/],
    [
      { grant: 'id-jag', issuer: '', tokenURL: 'https://a.example/t', clientSecretFile: '/s' },
      /idJag.audience: this or issuer/,
    ],
    [{ grant: 'id-jag', clientSecretFile: '/s' }, null],
  ]
  for (const [more, problem] of cases) {
    const text = ofProvider(more).join('\n')
    if (problem === null) assert.equal(text, '', JSON.stringify(more))
    else assert.match(text, problem, JSON.stringify(more))
  }
  const twice = problems({ ...good, providers: [hub, hub] }).join('\n')
  assert.match(twice, /providers\[1\].name: duplicate name/)
})

test('keys, addresses and issuers that are unusable are reported by field', () => {
  // Shows D3.tokenVault.externalUserIssuers.
  const text = problems({
    ...good,
    keyURI: 'kms://aws/eu/x',
    retiredKeyURIs: ['/old', 'http://x'],
    publicBaseURL: 'https://gateway.example/?a=b',
    externalUserIssuers: ['https://customer.example'],
    mirror: { namespace: 'a.b' },
  }).join('\n')
  for (const line of [
    'tokenVault.keyURI: key URI kms://aws/eu/x: write kms://aws/<region>/<key id',
    'tokenVault.retiredKeyURIs\\[1\\]: key URI http://x: unknown scheme',
    'tokenVault.publicBaseURL: must be a bare address',
    'tokenVault.externalUserIssuers\\[0\\]: is the issuer of no identity.trustedIssuers',
    'tokenVault.mirror.namespace: must match',
  ]) {
    assert.match(text, new RegExp(`^${line}`, 'm'))
  }
  const trusted = {
    resourceBaseURL: 'https://g.example',
    trustedIssuers: [{ issuer: 'https://customer.example', namespace: 'ext' }],
  }
  assert.deepEqual(problems({ ...good, externalUserIssuers: ['https://customer.example'] }, trusted), [])
})

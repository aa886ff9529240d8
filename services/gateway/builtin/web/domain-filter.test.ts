import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Caller, Snapshots } from '../../call/index.ts'
import { testIdentity } from '../../call/testing/identity.ts'
import { type Domains, Gates } from './domain-filter.ts'
import { webConfig } from './testing/fixture.ts'

/** Returns why a page is denied with these keys of `web`, to an agent of this namespace, or null. */
function faultOf(url: string, own: object, agent: Domains | null = null, namespace = 'default'): string | null {
  return gateOf(own, agent, namespace).fault(new URL(url))
}

function gateOf(own: object, agent: Domains | null = null, namespace = 'default') {
  const caller: Caller = { identity: { ...testIdentity, namespace }, snapshot: new Snapshots().current }
  return new Gates(webConfig({ enabled: true, ...own }), () => agent).of(caller)
}

test('without any list all domains are denied, unless defaultAllow is set', () => {
  // Shows D3.web.defaultAllow.
  assert.equal(faultOf('https://example.com/', {}), 'no list of allowed domains names its domain')
  assert.equal(gateOf({}).isShut, true)
  assert.equal(faultOf('https://example.com/', { defaultAllow: true }), null)
  assert.equal(gateOf({ defaultAllow: true }).isShut, false)
})

test('a denial of any level applies, and every level with allowed domains must list the domain', () => {
  // Shows D3.web.allowedDomains, D3.web.deniedDomains, D3.web.namespaces, D2.agent.web.allowedDomains and D2.agent.web.deniedDomains.
  const own = {
    allowedDomains: ['example.com', 'example.org'],
    deniedDomains: ['secret.example.com'],
    namespaces: { team: { allowedDomains: ['example.com'], deniedDomains: ['hr.example.com'] } },
  }
  const fault = (host: string, agent: Domains | null = null, namespace = 'team') =>
    faultOf(`https://${host}/`, own, agent, namespace)
  assert.equal(fault('www.example.com'), null)
  assert.equal(fault('example.net'), 'web.allowedDomains does not name its domain')
  assert.equal(fault('a.secret.example.com'), 'web.deniedDomains names its domain')
  assert.equal(fault('example.org'), 'web.namespaces.team.allowedDomains does not name its domain')
  assert.equal(fault('example.org', null, 'other'), null)
  assert.equal(fault('hr.example.com'), 'web.namespaces.team.deniedDomains names its domain')
  assert.equal(fault('hr.example.com', null, 'other'), null)
  const agent = { allowedDomains: ['docs.example.com'], deniedDomains: ['old.docs.example.com'] }
  assert.equal(fault('docs.example.com', agent), null)
  assert.equal(fault('www.example.com', agent), 'Agent.spec.web.allowedDomains does not name its domain')
  assert.equal(fault('old.docs.example.com', agent), 'Agent.spec.web.deniedDomains names its domain')
  assert.equal(fault('hr.example.com', { allowedDomains: ['*'] }), 'web.namespaces.team.deniedDomains names its domain')
})

test('the list of an agent suffices if no other level has one', () => {
  assert.equal(faultOf('https://example.com/', {}, { allowedDomains: ['example.com'] }), null)
  assert.equal(gateOf({}, { allowedDomains: ['example.com'] }).isShut, false)
  assert.equal(gateOf({}, { deniedDomains: ['example.com'] }).isShut, true)
})

test('ports, schemes, credentials and addresses are checked in every notation', () => {
  // Shows D3.web.allowedPorts and D3.web.allowIPLiterals.
  const open = { defaultAllow: true }
  assert.equal(faultOf('http://example.com:80/', open), null)
  assert.equal(faultOf('https://example.com:443/', open), null)
  assert.equal(faultOf('https://example.com:80/', open), null)
  assert.equal(faultOf('https://example.com:8443/', open), 'web.allowedPorts does not name its port')
  assert.equal(
    faultOf('https://example.com/', { ...open, allowedPorts: [80] }),
    'web.allowedPorts does not name its port',
  )
  assert.equal(
    faultOf('http://example.com/', { ...open, allowedPorts: [443] }),
    'web.allowedPorts does not name its port',
  )
  for (const url of ['ftp://example.com/', 'file:///etc/passwd', 'data:text/plain,x', 'javascript:1'])
    assert.equal(faultOf(url, open), 'only http and https can be read', url)
  assert.equal(faultOf('https://user:word@example.com/', open), 'it holds credentials')
  const literals = ['8.8.8.8', '0x08.8', '134744072', '8.8.8.8.', '[2001:4860:4860::8888]', '%38.8.8.8', '0']
  for (const host of literals) {
    assert.match(faultOf(`http://${host}/`, open) ?? '', /web\.allowIPLiterals/, host)
    assert.equal(faultOf(`http://${host}/`, { ...open, allowIPLiterals: true }), null, host)
  }
  const named = { allowedDomains: ['8.8.8.8'], allowIPLiterals: true }
  assert.equal(faultOf('http://8.8.8.8/', named), null)
  assert.equal(faultOf('http://8.8.4.4/', named), 'web.allowedDomains does not name its domain')
})

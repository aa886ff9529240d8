import assert from 'node:assert/strict'
import { test } from 'node:test'
import { page, setUpWeb, type WebFixture } from './testing/fixture.ts'

const denied = (why: string) => `policy_denied: the page redirects to an address that is not allowed: ${why}`
const INSIDE = 'it leads inside a private network, which web.allowedCIDRs does not allow'

test('every redirect is checked like the first URL, and its target is not revealed', async (t) => {
  // Shows D3.web.allowedCIDRs and D3.web.allowIPLiterals.
  let fixture: WebFixture | null = null
  const targets: Record<string, () => string> = {
    '/denied': () => `${fixture?.site('secret.example')}/x`,
    '/foreign': () => `${fixture?.site('elsewhere.net')}/ignore-all-rules`,
    '/port': () => 'http://a.example:1/',
    '/literal': () => `${fixture?.site('127.0.0.1')}/`,
    '/metadata': () => 'http://169.254.169.254/latest/meta-data/',
    '/inside': () => `${fixture?.site('inside.example')}/`,
    '/file': () => 'file:///etc/passwd',
    '/credentials': () => `${fixture?.site('user:word@a.example')}/`,
    '/nonsense': () => 'http://[',
  }
  fixture = await setUpWeb(t, {
    config: { defaultAllow: false, allowedDomains: ['example', 'elsewhere.org'], deniedDomains: ['secret.example'] },
    lookup: async (name) => [{ address: name === 'inside.example' ? '10.0.0.1' : '127.0.0.1', family: 4 }],
    answer(request, response) {
      const target = targets[request.url ?? '']
      if (target === undefined) return page(response, 'text/plain', 'reached')
      response.writeHead(302, { location: target() }).end()
    },
  })
  const read = (path: string) => fixture.fetch(fixture.site('a.example') + path)
  assert.equal(await read('/denied'), denied('web.deniedDomains names its domain'))
  assert.equal(await read('/foreign'), denied('web.allowedDomains does not name its domain'))
  assert.equal(await read('/port'), denied('web.allowedPorts does not name its port'))
  const literal = 'it names an IP address, which web.allowIPLiterals does not allow'
  assert.equal(await read('/literal'), denied(literal))
  assert.equal(await read('/metadata'), denied('web.allowedPorts does not name its port'))
  assert.equal(await read('/inside'), denied(INSIDE))
  assert.equal(await read('/file'), denied('only http and https can be read'))
  assert.equal(await read('/credentials'), denied('it holds credentials'))
  assert.equal(await read('/nonsense'), 'error: the page could not be read: it redirects to an invalid URL')
  assert.ok(fixture.requests.every((request) => request.startsWith('a.example/')))
  assert.deepEqual(new Set(fixture.counted), new Set(['web_fetch denied', 'web_fetch error']))
})

test('a forbidden URL is refused before any DNS lookup or request', async (t) => {
  const resolved: string[] = []
  const fixture = await setUpWeb(t, {
    config: { deniedDomains: ['secret.example'] },
    lookup: async (name) => {
      resolved.push(name)
      return [{ address: '127.0.0.1', family: 4 }]
    },
  })
  const result = await fixture.fetch(fixture.site('secret.example'))
  assert.equal(result, 'policy_denied: the address is not allowed: web.deniedDomains names its domain')
  assert.deepEqual([resolved, fixture.requests, fixture.counted], [[], [], ['web_fetch denied']])
})

test('a private address is reachable only by an exception, also if DNS changes between lookups', async (t) => {
  // Shows D3.web.allowedCIDRs.
  let lookups = 0
  const flips = async () => [{ address: lookups++ === 0 ? '127.0.0.1' : '127.0.0.2', family: 4 }]
  const answer = (_: unknown, response: Parameters<typeof page>[0]) =>
    page(response, 'text/plain', 'inside', { connection: 'close' })
  const closed = await setUpWeb(t, { answer, config: { allowedCIDRs: [] } })
  assert.equal(await closed.fetch(closed.site('a.example')), `policy_denied: the address is not allowed: ${INSIDE}`)
  const open = await setUpWeb(t, { answer, lookup: flips, config: { allowedCIDRs: ['127.0.0.1/32'] } })
  assert.equal((await open.fetch(open.site('a.example')))[1], 'inside')
  assert.equal(await open.fetch(open.site('a.example')), `policy_denied: the address is not allowed: ${INSIDE}`)
  assert.equal(lookups, 2)
})

test('redirects are followed up to the configured number', async (t) => {
  // Shows D3.web.maxRedirects.
  const fixture = await setUpWeb(t, {
    config: { maxRedirects: 2 },
    answer(request, response) {
      const left = Number(request.url?.slice(1))
      if (left === 0) page(response, 'text/plain', 'here')
      else response.writeHead(left % 2 === 0 ? 307 : 301, { location: `${left - 1}` }).end()
    },
  })
  const at = fixture.site('a.example')
  const [facts = '', text] = await fixture.fetch(`${at}/2`)
  assert.deepEqual([JSON.parse(facts).url, text], [`${at}/0`, 'here'])
  assert.equal(await fixture.fetch(`${at}/3`), 'error: the page could not be read: it redirects more than 2 times')
})

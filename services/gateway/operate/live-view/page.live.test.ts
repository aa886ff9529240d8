import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pageAt } from '../console/testing/page.ts'
import { SESSION, setUpViews } from './testing/fixture.ts'

const HOSTILE = '<script>fetch("/v1/revocations")</script>'

const PAGES = {
  '/default/s1/state.json': { headers: { 'content-type': 'application/json' }, body: '{"tabs":1}' },
  '/default/s1/state.json?a=1': { headers: { 'content-type': 'text/plain; charset=utf-8' }, body: 'with a query' },
  '/default/s1/page.html': {
    headers: {
      'content-type': 'text/html',
      'set-cookie': '__Host-plat-console=stolen; Path=/; Secure',
      'content-security-policy': "script-src 'unsafe-inline'",
      'clear-site-data': '"*"',
      'access-control-allow-origin': '*',
      'x-sandbox': 'mine',
      refresh: '0; url=https://evil.example/',
    },
    body: HOSTILE,
  },
  '/default/s1/odd': { headers: { 'content-type': 'text/html, text/plain; x="\\"' }, body: HOSTILE },
  '/default/s1/parameters': { headers: { 'content-type': 'text/html; charset=utf-8; x=y' }, body: HOSTILE },
  '/default/s1/missing': { status: 404, body: 'nothing' },
  '/default/s1/away': { status: 302, headers: { location: 'http://127.0.0.1:9/' }, body: '' },
  '/default/s1/large': { body: 'x'.repeat(4 * 1024 * 1024 + 1) },
  '/secret': { body: 'outside' },
}

interface GetOptions {
  readonly user?: string | null
  readonly headers?: Readonly<Record<string, string>>
  readonly method?: string
}

async function setUp(t: Parameters<typeof setUpViews>[0]) {
  const fixture = await setUpViews(t, { rfb: { pages: PAGES } })
  const get = async (path: string, { user = null, headers = {}, method = 'GET' }: GetOptions = {}) => {
    const url = `${fixture.gateway.adminUrl}/v1/sessions/${encodeURIComponent(SESSION)}/view/page/${path}`
    const sent = { authorization: await fixture.bearer(user), ...headers }
    const response = await fetch(url, { method, headers: sent, redirect: 'manual' })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }
  return { ...fixture, get }
}

test('files beside a view are passed on, with nothing of the caller, and recorded', async (t) => {
  const { get, rfb, records } = await setUp(t)
  const headers = { cookie: 'a=secret', 'x-mine': 'secret' }
  assert.equal((await get('state.json', { user: 'auditor', headers })).text, '{"tabs":1}')
  assert.equal((await get('state.json?a=1')).text, 'with a query')
  assert.equal((await get('missing')).status, 404)
  for (const { headers: sent } of rfb.requests) assert.deepEqual(Object.keys(sent), ['host'])
  const [begin, end] = await records(6)
  const names = { mode: 'page', namespace: 'default', agent: 'assistant', session: 's1', by: 'user:auditor' }
  assert.partialDeepStrictEqual(begin, { action: 'view.begin', path: '/default/s1/state.json', ...names })
  assert.partialDeepStrictEqual(end, { action: 'view.end', result: 'closed', bytesOut: 10, ...names })
})

test('a page of a sandbox has another origin, runs no script, is saved, and sets nothing', async (t) => {
  const { get } = await setUp(t)
  for (const path of ['page.html', 'odd']) {
    const { headers, text } = await get(path)
    assert.equal(text, HOSTILE)
    const policy = headers.get('content-security-policy') ?? ''
    assert.match(policy, /^sandbox; default-src 'none'/)
    assert.equal(headers.get('content-disposition'), 'attachment')
    assert.equal(headers.get('x-content-type-options'), 'nosniff')
    assert.equal(headers.get('cache-control'), 'no-store')
    for (const name of ['set-cookie', 'clear-site-data', 'access-control-allow-origin', 'x-sandbox', 'refresh'])
      assert.equal(headers.get(name), null, name)
  }
  for (const path of ['odd', 'parameters'])
    assert.equal((await get(path)).headers.get('content-type'), 'application/octet-stream', path)
})

test('only files below the endpoint are requested, with GET, by who may view', async (t) => {
  const { get, rfb, gateway, bearer } = await setUp(t)
  const page = pageAt(gateway.adminUrl)
  const headers = { authorization: await bearer(null) }
  // The client of a page resolves dots before it sends a path.
  const elsewhere = ['../../secret', '%2e%2e/%2E./secret', 'a/../../../secret', '..\\..\\secret', 'x'.repeat(3000)]
  for (const path of elsewhere) {
    const { status } = await page('GET', `/v1/sessions/${encodeURIComponent(SESSION)}/view/page/${path}`, { headers })
    assert.equal(status, 400, path)
  }
  assert.equal((await get('state.json', { method: 'POST' })).status, 404)
  assert.equal((await get('state.json', { user: 'viewer' })).status, 403)
  assert.equal((await get('state.json', { user: 'there' })).status, 404)
  assert.deepEqual(rfb.requests, [])
})

test('a redirect, a response that is too long, and a sandbox that is away are refused', async (t) => {
  const { get, rfb, admin, gateway } = await setUp(t)
  assert.equal((await get('away')).status, 502)
  assert.equal((await get('large')).status, 502)
  await rfb.close()
  assert.equal((await get('state.json')).status, 502)
  await admin('POST', '/v1/revocations', { target: { session: SESSION } })
  assert.equal((await get('state.json')).status, 403)
  const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text()
  const counted = metrics.split('\n').filter((line) => line.startsWith('plat_gateway_live_views_total{'))
  assert.deepEqual(counted, ['plat_gateway_live_views_total{mode="page",result="unreachable"} 3'])
})

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib'
import { wholeLines } from '@plat/testkit/ledger'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { started, TOKEN } from '../../testing/started.ts'
import { cookieOf, type PageResponse, pageAt } from './testing/page.ts'

const INDEX = Buffer.from('<!doctype html><title>plat</title>'.repeat(20))
const SCRIPT = Buffer.from('export const a = 1\n'.repeat(50))
const ASSETS = [
  { path: 'index.html', type: 'text/html; charset=utf-8', bytes: INDEX, brotli: null, gzip: null, immutable: false },
  {
    path: 'assets/main.1a2b.js',
    type: 'text/javascript; charset=utf-8',
    bytes: SCRIPT,
    brotli: brotliCompressSync(SCRIPT),
    gzip: gzipSync(SCRIPT),
    immutable: true,
  },
]

async function setUp(t: TestContext, own: object = {}) {
  const { gateway } = await started(t, own, false, { consoleAssets: async () => ASSETS })
  const page = pageAt(gateway.adminUrl)
  const admin = { authorization: `Bearer ${TOKEN}` }
  const link = async () => String((await page('POST', '/v1/console/links', { headers: admin })).body.code)
  /** Logs in with a link; returns the cookie and the token for changes. */
  const logIn = async () => {
    const cookie = cookieOf(await page('POST', '/console/link', { body: { code: await link() } }))
    const csrf = String((await page('GET', '/console/session', { cookie })).body.csrf)
    return { cookie, csrf }
  }
  return { gateway, page, admin, link, logIn }
}

test('pages and files of the console are served with their security headers', async (t) => {
  const { page } = await setUp(t)
  const wants = (accepted: string) =>
    page('GET', '/console/assets/main.1a2b.js', { headers: { 'accept-encoding': accepted } })
  const plain = await wants('identity')
  assert.deepEqual([plain.status, plain.bytes, plain.headers['content-encoding']], [200, SCRIPT, undefined])
  assert.equal(plain.headers['cache-control'], 'public, max-age=31536000, immutable')
  assert.deepEqual(brotliDecompressSync((await wants('gzip, br')).bytes), SCRIPT)
  assert.deepEqual(gunzipSync((await wants('br;q=0, gzip')).bytes), SCRIPT)
  for (const path of ['/console', '/console/', '/console/approvals/1', '/console/sessions/a%2Fb%2Fc.1']) {
    const response = await page('GET', path)
    assert.deepEqual(
      [response.status, response.bytes, response.headers['cache-control']],
      [200, INDEX, 'no-store'],
      path,
    )
    assert.equal(response.headers['content-type'], 'text/html; charset=utf-8')
  }
  for (const path of [
    '/console/assets/main.0000.js',
    '/console/other.js',
    '/console/assets/',
    '/console/assets/../index.html',
  ]) {
    assert.equal((await page('GET', path)).status, 404, path)
  }
  for (const { headers } of [plain, await page('GET', '/console/'), await page('GET', '/console/x.js')]) {
    const policy = String(headers['content-security-policy'])
    for (const directive of [
      "default-src 'none'",
      "script-src 'self'",
      "frame-ancestors 'none'",
      "require-trusted-types-for 'script'",
    ])
      assert.ok(policy.includes(directive), directive)
    assert.doesNotMatch(policy, /unsafe|data:|\*/)
    const { 'x-content-type-options': sniff, 'referrer-policy': referrer } = headers
    assert.deepEqual(
      [sniff, referrer, headers['cross-origin-opener-policy']],
      ['nosniff', 'no-referrer', 'same-origin'],
    )
  }
})

test('the console is off on a listener for other machines, unless it is enabled or apart from agents', async (t) => {
  const on = async (own: object) => {
    const { gateway, page } = await setUp(t, own)
    const main = (await pageAt(gateway.url)('GET', '/console/')).status
    return [main, gateway.adminUrl === gateway.url ? main : (await page('GET', '/console/')).status]
  }
  assert.deepEqual(await on({ listen: '0.0.0.0:0' }), [404, 404])
  assert.deepEqual(await on({ listen: '0.0.0.0:0', console: { enabled: true } }), [200, 200])
  assert.deepEqual(await on({ listen: '0.0.0.0:0', adminListen: 'localhost:0' }), [404, 200])
  assert.deepEqual(await on({ console: { enabled: false } }), [404, 404])
})

test('a link logs a browser in once, with the roles of the static token', async (t) => {
  const { page, link } = await setUp(t)
  const out = await page('GET', '/console/session')
  assert.deepEqual([out.status, out.body.login], [401, [{ kind: 'link', hint: 'plat console' }]])
  const code = await link()
  const used = await page('POST', '/console/link', { body: { code } })
  assert.equal(used.status, 204)
  const [line = ''] = used.headers['set-cookie'] ?? []
  assert.match(line, /^__Host-plat-console-\d+=[\w-]{43}; Path=\/; Max-Age=28800; Secure; HttpOnly; SameSite=Strict$/)
  const { body } = await page('GET', '/console/session', { cookie: cookieOf(used) })
  assert.deepEqual([body.name, body.login, body.namespaces], ['token:admin', 'link', null])
  assert.equal((await page('GET', '/v1/whoami', { cookie: cookieOf(used) })).body.by, 'token:admin')
  assert.equal((await page('POST', '/console/link', { body: { code } })).status, 401, 'replayed')
  for (const guess of [
    'x',
    code.slice(0, -2),
    `${code}A`,
    code.replace(/.(?=.{9}$)/, (one) => (one === 'a' ? 'b' : 'a')),
  ])
    assert.equal((await page('POST', '/console/link', { body: { code: guess } })).status, 401, guess)
})

test('pages of other sites, ports and names cannot log in, act or read', async (t) => {
  const { gateway, page, link, logIn } = await setUp(t)
  const { host, port } = new URL(gateway.adminUrl)
  const { cookie, csrf } = await logIn()
  const revoke = { body: { target: { agent: 'default/other' } }, cookie }
  const acts = async (given: object) => (await page('POST', '/v1/revocations', { ...revoke, ...given })).status
  assert.equal(await acts({ csrf }), 201)
  const hostile = {
    'another site': { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' },
    'another port': { origin: 'http://127.0.0.1:1', 'sec-fetch-site': 'same-site' },
    'another name of this machine': { origin: `http://localhost:${port}`, 'sec-fetch-site': 'same-site' },
    'an old browser on another port': { origin: 'http://127.0.0.1:1' },
    'a sandboxed frame': { origin: 'null', 'sec-fetch-site': 'cross-site' },
    'a name that was pointed here': { host: `evil.example:${port}`, origin: `http://evil.example:${port}` },
  }
  for (const [who, headers] of Object.entries(hostile)) {
    assert.equal(await acts({ csrf, headers }), 403, who)
    const login = await page('POST', '/console/link', { body: { code: await link() }, headers })
    assert.deepEqual([login.status, login.headers['set-cookie']], [403, undefined], who)
    assert.equal((await page('POST', '/console/logout', { cookie, csrf, headers })).status, 403, who)
  }
  assert.equal(await acts({}), 403, 'without the token against forgery')
  assert.equal(await acts({ csrf: `${csrf.slice(0, -1)}${csrf.endsWith('A') ? 'B' : 'A'}` }), 403)
  const reads = async (headers: Record<string, string>) =>
    (await page('GET', '/v1/sessions', { cookie, headers })).status
  assert.deepEqual(
    [await reads({}), await reads({ 'sec-fetch-site': 'none' }), await reads({ 'sec-fetch-site': 'same-site' })],
    [200, 200, 403],
  )
  assert.equal(await reads({ host: host.replace('127.0.0.1', 'evil.example') }), 403)
})

test('a session of the console is not a credential for agents, resources or links', async (t) => {
  const { page, logIn } = await setUp(t, { resourceAPI: { enabled: true, dir: tempFolder() } })
  const { cookie, csrf } = await logIn()
  const status = async (method: string, path: string) => (await page(method, path, { cookie, csrf, body: {} })).status
  assert.equal(await status('GET', '/apis/plat.dev/v1alpha1/agents'), 401)
  assert.equal(await status('POST', '/mcp/notes'), 401)
  assert.equal(await status('POST', '/v1/console/links'), 409)
})

test('logging in again and logging out end sessions, and are recorded', async (t) => {
  const auditPath = join(tempFolder(), 'audit.jsonl')
  const { page, link, logIn } = await setUp(t, { auditPath })
  const status = async (cookie: string) => (await page('GET', '/console/session', { cookie })).status
  const first = await logIn()
  const again = await page('POST', '/console/link', { body: { code: await link() }, cookie: first.cookie })
  const second = cookieOf(again)
  assert.notEqual(second, first.cookie)
  assert.deepEqual([await status(first.cookie), await status(second)], [401, 200])
  const [one, other] = [await logIn(), await logIn()]
  const leaves = (who: typeof one, body: object) => page('POST', '/console/logout', { ...who, body })
  const left: PageResponse = await leaves(one, {})
  assert.equal(left.status, 204)
  assert.match(left.headers['set-cookie']?.[0] ?? '', /=; Path=\/; Max-Age=0/)
  assert.deepEqual([await status(one.cookie), await status(other.cookie)], [401, 200])
  assert.equal((await leaves(other, { all: true })).status, 204)
  assert.deepEqual([await status(other.cookie), await status(second)], [401, 401])
  const actions = () =>
    wholeLines(auditPath)
      .map((line) => JSON.parse(line).rec)
      .filter(({ action }) => String(action).startsWith('console'))
      .map(({ action, by }) => `${action} ${by}`)
  await until(() => actions().length === 6, 'the records')
  assert.deepEqual(actions().slice(-2), ['console logout token:admin', 'console logout everywhere token:admin'])
})

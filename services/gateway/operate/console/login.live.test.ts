import assert from 'node:assert/strict'
import { after, before, type TestContext, test } from 'node:test'
import { type AccountsProvider, passAs, startAccountsProvider } from '@plat/testkit/oidc/accounts'
import { Browser } from '@plat/testkit/oidc/browser'
import { started } from '../../testing/started.ts'
import { cookieOf, pageAt } from './testing/page.ts'

const ORIGIN = 'https://console.example'
const AUDIENCE = 'plat-admin'
const RESOURCE = 'https://plat.example/admin'
let people: AccountsProvider

before(async () => {
  people = await startAccountsProvider({
    clients: [
      { client_id: 'console', token_endpoint_auth_method: 'none', redirect_uris: [`${ORIGIN}/console/callback`] },
    ],
    resource: { indicator: RESOURCE, audience: AUDIENCE, groups: { ada: ['leads'], eve: [] } },
  })
})
after(() => people.close())

async function setUp(t: TestContext, own: object = {}) {
  const { gateway } = await started(t, {
    consoleURL: `${ORIGIN}/console`,
    adminAuth: {
      mode: 'oidc',
      roles: { approver: ['leads'] },
      namespaceRoles: { shop: { killswitch: ['leads'] } },
      oidc: {
        issuer: people.url,
        audience: AUDIENCE,
        clientID: 'console',
        scopes: ['offline_access'],
        resource: RESOURCE,
      },
      ...own,
    },
  })
  const browser = new Browser({ [ORIGIN]: gateway.adminUrl })
  const page = pageAt(gateway.adminUrl)
  const here = { host: 'console.example', origin: ORIGIN }
  const cookies = () => browser.cookies('console.example')
  const cookie = () => `__Host-plat-console=${cookies()['__Host-plat-console'] ?? ''}`
  const session = () => page('GET', '/console/session', { cookie: cookie(), headers: here })
  /** Logs in; returns where the browser ends. */
  const logIn = async (person: string, query = '') => {
    await browser.open(`${ORIGIN}/console/login?to=/console/approvals/7${query}`)
    return (await passAs(browser, people, person)).url.href
  }
  return { gateway, browser, page, here, cookies, cookie, session, logIn }
}

test('a person logs in at the identity provider, and has roles as with a token', async (t) => {
  const { page, here, cookie, session, logIn, cookies } = await setUp(t)
  assert.deepEqual((await session()).body.login, [{ kind: 'oidc', url: '/console/login' }])
  assert.equal(await logIn('ada'), `${ORIGIN}/console/approvals/7`)
  assert.deepEqual(Object.keys(cookies()), ['__Host-plat-console'])
  const { body } = await session()
  assert.deepEqual([body.name, body.issuer, body.login], ['user:ada', people.url, 'oidc'])
  assert.deepEqual(body.namespaceRoles, { shop: ['killswitch'] })
  const statusOf = async (method: string, path: string, target?: object) => {
    const csrf = String((await session()).body.csrf)
    return (await page(method, path, { cookie: cookie(), csrf, headers: here, ...(target && { body: { target } }) }))
      .status
  }
  assert.equal(await statusOf('GET', '/v1/approvals'), 200)
  assert.equal(await statusOf('GET', '/v1/audit/records'), 403)
  assert.equal(await statusOf('POST', '/v1/revocations', { namespace: 'shop' }), 201)
  assert.equal(await statusOf('POST', '/v1/revocations', { namespace: 'bank' }), 403)
})

test('a login of another browser, changed or used, begins no session', async (t) => {
  const { browser, logIn, cookies, gateway } = await setUp(t)
  await browser.open(`${ORIGIN}/console/login`)
  const isBack = ({ origin }: URL) => origin === ORIGIN
  const { url: back } = await passAs(browser, people, 'ada', isBack)
  assert.equal(back.pathname, '/console/callback')
  const failed = `${ORIGIN}/console/#login-error=failed`
  const other = new Browser({ [ORIGIN]: gateway.adminUrl })
  assert.equal((await other.open(back)).url.href, failed, 'another browser without a cookie')
  await other.open(`${ORIGIN}/console/login`, ({ origin }) => origin === people.url)
  assert.equal((await other.open(back)).url.href, failed, 'another browser with another login')
  const changed = new URL(back)
  changed.searchParams.set('state', `${back.searchParams.get('state')}A`)
  assert.equal((await browser.open(changed)).url.href, failed)
  assert.deepEqual(other.cookies('console.example')['__Host-plat-console'], undefined)
  assert.equal((await browser.open(back)).url.href, `${ORIGIN}/console/`)
  const [first] = Object.values(cookies())
  assert.equal((await browser.open(back)).url.href, failed, 'the code is used')
  await logIn('ada')
  assert.notEqual(cookies()['__Host-plat-console'], first, 'a login renews the secret')
})

test('a code is redeemed only in the login and for the issuer that it was issued for, and no invented cookie is adopted', async (t) => {
  const { browser, cookies, gateway, page, here, session } = await setUp(t)
  const isBack = ({ origin }: URL) => origin === ORIGIN
  const failed = `${ORIGIN}/console/#login-error=failed`
  const begin = async (one: Browser, person: string) => {
    await one.open(`${ORIGIN}/console/login`)
    return (await passAs(one, people, person, isBack)).url
  }
  const attacker = new Browser({ [ORIGIN]: gateway.adminUrl })
  const [theirs, mine] = [await begin(attacker, 'eve'), await begin(browser, 'ada')]
  const changed = (change: (query: URLSearchParams) => void, of = mine) => {
    const url = new URL(of)
    change(url.searchParams)
    return url
  }
  for (const [attack, url] of Object.entries({
    'the code of another person': changed((query) => query.set('code', theirs.searchParams.get('code') ?? '')),
    'the whole response to another browser': theirs,
    'another issuer': changed((query) => query.set('iss', 'https://evil.example')),
    'two states': changed((query) => query.append('state', theirs.searchParams.get('state') ?? '')),
    'no code': changed((query) => query.delete('code')),
    'an error beside the code': changed((query) => query.set('error', 'access_denied')),
  })) {
    assert.equal((await browser.open(url)).url.href, failed, attack)
    assert.equal(cookies()['__Host-plat-console'], undefined, attack)
    assert.equal((await session()).status, 401, attack)
  }
  const invented = `__Host-plat-console=${'A'.repeat(43)}`
  const begun = await page('GET', '/console/login', { headers: here, cookie: invented })
  const lines = begun.headers['set-cookie'] ?? []
  assert.ok(lines.length > 0)
  for (const line of lines) {
    for (const flag of ['HttpOnly', 'Secure', 'Path=/']) assert.ok(line.includes(flag), line)
    assert.match(line, /SameSite=(?:Lax|Strict)/)
    assert.ok(!line.includes('A'.repeat(43)))
  }
  assert.equal((await page('GET', '/console/session', { headers: here, cookie: invented })).status, 401)
})

test('a peer that redeems invented codes without end is slowed down and then refused, since each is a request to the provider', async (t) => {
  const { page, here } = await setUp(t)
  const begun = await page('GET', '/console/login', { headers: here })
  const cookie = cookieOf(begun)
  const state = new URL(String(begun.headers.location)).searchParams.get('state') ?? ''
  const redeem = async () => page('GET', `/console/callback?code=invented&state=${state}`, { cookie, headers: here })
  const sent = Array.from({ length: 25 }, redeem)
  await Promise.race(sent)
  // Some of the 25 may be refused already.
  const statuses = new Set<number>()
  for (let tries = 0; tries < 3 && !statuses.has(429); tries++) statuses.add((await redeem()).status)
  for (const { status } of await Promise.all(sent)) statuses.add(status)
  assert.deepEqual(statuses, new Set([303, 429]))
})

test('a login leads to pages of the console only', async (t) => {
  const { browser } = await setUp(t)
  for (const to of [
    'https://evil.example/',
    '//evil.example',
    '/console//evil.example',
    '/console/\\evil',
    '/v1/whoami',
    '/consoles',
  ]) {
    await browser.open(`${ORIGIN}/console/login?to=${encodeURIComponent(to)}`)
    const { way } = await passAs(browser, people, 'ada')
    assert.equal(way.at(-1) ?? browser.page.url.href, `${ORIGIN}/console/`, to)
  }
})

test('an action that needs a fresh login leads to one, and passes after it', async (t) => {
  const none = { acr: [], amr: [], maxAgeSeconds: 0 }
  const { page, here, cookie, session, logIn } = await setUp(t, {
    stepUp: { revoke: { maxAgeSeconds: 3600 }, approve: none },
  })
  await logIn('ada')
  const revoke = async () => {
    const csrf = String((await session()).body.csrf)
    const body = { target: { namespace: 'shop' } }
    return page('POST', '/v1/revocations', { cookie: cookie(), csrf, headers: here, body })
  }
  const { status, body } = await revoke()
  assert.deepEqual([status, body.error, body.acr, body.maxAge], [403, 'step_up_required', '', 3600])
  await logIn('ada', '&max_age=3600')
  assert.equal((await revoke()).status, 201)
  assert.deepEqual((await session()).body.stepUp, { revoke: { ...none, maxAgeSeconds: 3600 } })
})

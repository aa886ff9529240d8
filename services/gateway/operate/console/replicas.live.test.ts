import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { startBalancer } from '@plat/testkit/balancer'
import { tempFolder } from '@plat/testkit/local'
import { passAs, startAccountsProvider } from '@plat/testkit/oidc/accounts'
import { Browser } from '@plat/testkit/oidc/browser'
import { usePostgres } from '@plat/testkit/postgres/server'
import { until } from '@plat/testkit/until'
import { started } from '../../testing/started.ts'
import { pageAt } from './testing/page.ts'

const ORIGIN = 'https://console.example'
const HOST = 'console.example'
const RESOURCE = 'https://plat.example/admin'
const postgres = usePostgres()
const people = await startAccountsProvider({
  clients: [
    { client_id: 'console', token_endpoint_auth_method: 'none', redirect_uris: [`${ORIGIN}/console/callback`] },
  ],
  resource: { indicator: RESOURCE, audience: 'plat-admin', groups: { ada: ['leads'] } },
})
after(() => people.close())

/** Two replicas with one database. They read what the other stored every `pollMillis`, or when they need it. */
async function setUp(t: TestContext, pollMillis = 1_000) {
  await postgres.started
  const dsnFile = join(tempFolder(), 'dsn')
  await writeFile(dsnFile, `${postgres.dsn}\n`)
  const config = {
    consoleURL: `${ORIGIN}/console`,
    stateBackend: { type: 'postgres', dsnFile, pollMillis },
    adminAuth: {
      mode: 'oidc',
      roles: { approver: ['leads'] },
      oidc: { issuer: people.url, audience: 'plat-admin', clientID: 'console', resource: RESOURCE },
    },
  }
  const [{ gateway: one }, { gateway: other }] = [await started(t, config), await started(t, config)]
  return { one, other }
}

/** Logs in and returns the cookie of the session. */
async function loggedIn(browser: Browser): Promise<string> {
  await browser.open(`${ORIGIN}/console/login?to=/console/approvals`)
  assert.equal((await passAs(browser, people, 'ada')).url.href, `${ORIGIN}/console/approvals`)
  return cookieWith(browser.cookies(HOST)['__Host-plat-console'] ?? '')
}

const cookieWith = (secret: string) => `__Host-plat-console=${secret}`
const headers = { host: HOST, origin: ORIGIN }

test('a login that begins at one replica ends at another, and each replica knows its session and its end', async (t) => {
  const { one, other } = await setUp(t)
  const balancer = await startBalancer([one.adminUrl, other.adminUrl])
  t.after(() => balancer.close())
  const browser = new Browser({ [ORIGIN]: balancer.url })
  const cookie = await loggedIn(browser)
  assert.ok(
    balancer.counts.every((count) => count > 0),
    'the login passed through one replica only',
  )
  const sessionAt = (url: string) => pageAt(url)('GET', '/console/session', { cookie, headers })
  for (const { adminUrl } of [one, other]) assert.equal((await sessionAt(adminUrl)).body.name, 'user:ada')
  const csrf = String((await sessionAt(one.adminUrl)).body.csrf)
  const ended = await pageAt(one.adminUrl)('POST', '/console/logout', { cookie, csrf, headers })
  assert.ok(ended.status < 300, String(ended.status))
  for (const { adminUrl } of [one, other]) assert.equal((await sessionAt(adminUrl)).body.name, undefined)
})

test('guessed sessions read the database within the share of their peer, and a session of another replica is found meanwhile', async (t) => {
  const { one, other } = await setUp(t, 60_000)
  const cookie = await loggedIn(new Browser({ [ORIGIN]: one.adminUrl }))
  const at = pageAt(other.adminUrl)
  const guess = () => at('GET', '/v1/whoami', { cookie: cookieWith(randomBytes(32).toString('base64url')), headers })
  const refused = async () => {
    const text = await (await fetch(`${other.url}/metrics`)).text()
    const row = /^plat_gateway_pool_refusals_total\{pool="unknown_console_sessions",bound="share"\} (\d+)$/m
    return Number(row.exec(text)?.[1] ?? 0)
  }
  const guesses = Array.from({ length: 300 }, guess)
  await Promise.any(guesses.map(async (reply) => assert.equal((await reply).status, 429)))
  const person = () => at('GET', '/v1/whoami', { cookie, headers, from: '127.0.0.2' })
  // The first request looks the session up, the second knows it.
  assert.deepEqual([(await person()).status, (await person()).status], [200, 200])
  const all = await Promise.all(guesses)
  assert.ok(all.every(({ status }) => status === 401 || status === 429))
  // On a busy machine the pause after refused logins keeps some rounds within the share.
  const isBeyond = async () => {
    await Promise.all(Array.from({ length: 300 }, guess))
    return (await refused()) > 0
  }
  await until(isBeyond, 'guesses beyond the share that are not looked up')
  // The cookie of a session that was not looked up stays, since it may be valid.
  assert.ok(all.every((reply) => (reply.status === 401) === (reply.headers['set-cookie'] !== undefined)))
})

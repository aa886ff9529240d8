import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { startBalancer } from '@plat/testkit/balancer'
import { tempFolder } from '@plat/testkit/local'
import { passAs, startAccountsProvider } from '@plat/testkit/oidc/accounts'
import { Browser } from '@plat/testkit/oidc/browser'
import { usePostgres } from '@plat/testkit/postgres/server'
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

test('a login that begins at one replica ends at another, and each replica knows its session and its end', async (t) => {
  await postgres.started
  const dsnFile = join(tempFolder(), 'dsn')
  await writeFile(dsnFile, `${postgres.dsn}\n`)
  const config = {
    consoleURL: `${ORIGIN}/console`,
    stateBackend: { type: 'postgres', dsnFile },
    adminAuth: {
      mode: 'oidc',
      roles: { approver: ['leads'] },
      oidc: { issuer: people.url, audience: 'plat-admin', clientID: 'console', resource: RESOURCE },
    },
  }
  const [{ gateway: one }, { gateway: other }] = [await started(t, config), await started(t, config)]
  const balancer = await startBalancer([one.adminUrl, other.adminUrl])
  t.after(() => balancer.close())
  const browser = new Browser({ [ORIGIN]: balancer.url })
  await browser.open(`${ORIGIN}/console/login?to=/console/approvals`)
  assert.equal((await passAs(browser, people, 'ada')).url.href, `${ORIGIN}/console/approvals`)
  assert.ok(
    balancer.counts.every((count) => count > 0),
    'the login passed through one replica only',
  )
  const cookie = `__Host-plat-console=${browser.cookies(HOST)['__Host-plat-console'] ?? ''}`
  const headers = { host: HOST, origin: ORIGIN }
  const sessionAt = (url: string) => pageAt(url)('GET', '/console/session', { cookie, headers })
  for (const { adminUrl } of [one, other]) assert.equal((await sessionAt(adminUrl)).body.name, 'user:ada')
  const csrf = String((await sessionAt(one.adminUrl)).body.csrf)
  const ended = await pageAt(one.adminUrl)('POST', '/console/logout', { cookie, csrf, headers })
  assert.ok(ended.status < 300, String(ended.status))
  for (const { adminUrl } of [one, other]) assert.equal((await sessionAt(adminUrl)).body.name, undefined)
})

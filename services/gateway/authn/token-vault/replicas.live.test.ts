import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { startBalancer } from '@plat/testkit/balancer'
import { tempFolder } from '@plat/testkit/local'
import { Browser } from '@plat/testkit/oidc/browser'
import { usePostgres } from '@plat/testkit/postgres/server'
import { until } from '@plat/testkit/until'
import { PUBLIC, startProviders, VaultFixture, type VaultOptions } from './testing/fixture.ts'

const postgres = usePostgres()
const providers = await startProviders()
after(() => providers.close())

let schemas = 0

/** Two gateways with one vault in Postgres, and a browser whose requests go to them in turn. */
async function replicas(t: TestContext, options: VaultOptions = {}) {
  await postgres.started
  const dsnFile = join(tempFolder(), 'dsn')
  await writeFile(dsnFile, `${postgres.dsn}\n`)
  const schema = `vault_${++schemas}`
  const config = { stateBackend: { type: 'postgres', dsnFile, schema, leader: { retryMillis: 200 } } }
  const one = await VaultFixture.start(t, providers, { ...options, config })
  const other = await VaultFixture.start(t, providers, { ...options, config, vault: { keyURI: one.keyURI } })
  const balancer = await startBalancer([one.url, other.url])
  t.after(() => balancer.close())
  return { one, other, schema, balancer, browser: () => new Browser({ [PUBLIC]: balancer.url }) }
}

test('an account that is connected over two replicas is used and disconnected at each of them, and no token is in clear', async (t) => {
  const { one, other, schema, balancer, browser } = await replicas(t)
  const mine = browser()
  const done = await one.connect(mine, 'ada', 'ada-at-hub')
  assert.match(done.text, /hub is connected/)
  assert.ok(
    balancer.counts.every((count) => count > 0),
    'the flow passed through one replica only',
  )
  await until(async () => (await one.callAs('ada')).as === 'ada-at-hub', 'the account at one replica')
  await until(async () => (await other.callAs('ada')).as === 'ada-at-hub', 'the account at the other')
  const rows = await postgres.rows(`SELECT * FROM ${schema}.entry WHERE journal = 'accounts'`)
  assert.ok(rows.length > 0)
  const stored = JSON.stringify(rows)
  for (const token of [...one.seen(), ...other.seen()]) assert.ok(!stored.includes(token), 'a token is in the database')
  assert.doesNotMatch(stored, /refreshToken|accessToken/)
  await one.login(mine, 'ada')
  await mine.submit({ action: 'disconnect' })
  for (const gateway of [one, other])
    await until(async () => (await gateway.callAs('ada')).error === 'upstream_credential', 'the disconnection')
})

test('a step of a flow is used once over all replicas', async (t) => {
  const { one, other, browser } = await replicas(t)
  const mine = browser()
  let callback = ''
  await one.connect(mine, 'ada', 'ada-at-hub', ({ href }) => {
    if (href.startsWith(`${PUBLIC}/v1/connect/hub/callback`)) callback = href
    return callback !== ''
  })
  const { pathname, search } = new URL(callback)
  const cookie = Object.entries(mine.cookies(new URL(PUBLIC).host))
    .map(([name, value]) => `${name}=${value}`)
    .join('; ')
  const answers = await Promise.all(
    [one, other, one, other].map(({ url }) =>
      fetch(url + pathname + search, { headers: { cookie }, redirect: 'manual' }).then(({ status }) => status),
    ),
  )
  assert.deepEqual(answers.toSorted(), [200, 400, 400, 400])
})

test('replicas that renew a token at once use each refresh token once', async (t) => {
  // The provider ends the account when a refresh token is used twice.
  const { one, other, browser } = await replicas(t, { clientID: 'vault-brief' })
  await one.connect(browser(), 'ada', 'ada-at-hub')
  const before = one.hub.lines().length
  const linesWith = (word: string) =>
    one.hub
      .lines()
      .slice(before)
      .filter((line) => line.startsWith(word))
  await until(async () => (await other.callAs('ada')).as === 'ada-at-hub', 'the account at the other')
  for (let round = 1; round <= 3; round++) {
    await until(async () => {
      const calls = Array.from({ length: 12 }, (_, n) => (n % 2 === 0 ? one : other).callAs('ada'))
      assert.deepEqual([...new Set((await Promise.all(calls)).map(({ as }) => as))], ['ada-at-hub'])
      return linesWith('granted refresh_token').length >= round
    }, `renewal ${round}`)
  }
  assert.deepEqual(linesWith('refused'), [])
})

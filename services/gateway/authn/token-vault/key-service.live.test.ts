import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { kmsEnv } from '@plat/key-services/testing/environments'
import { startKms } from '@plat/key-services/testing/kms-server'
import { until } from '@plat/testkit/until'
import { startProviders, VaultFixture } from './testing/fixture.ts'

const providers = await startProviders()
after(() => providers.close())

test('while the key service fails, accounts that are not in memory are refused with state_unavailable, and none is lost', async (t) => {
  const kms = await startKms(t)
  const keyURI = kms.uri(kms.add('SYMMETRIC_DEFAULT'))
  const fixture = await VaultFixture.start(t, providers, { vault: { keyURI }, env: kmsEnv(kms.url) })
  await fixture.connect(fixture.browser(), 'ada', 'ada-at-hub')
  assert.equal((await fixture.callAs('ada')).as, 'ada-at-hub')
  await fixture.restart({})
  kms.fail('cut')
  const refused = await fixture.callAs('ada')
  assert.deepEqual(
    [refused.error, refused.reason.includes('the key service does not decrypt connected accounts now')],
    ['state_unavailable', true],
    refused.reason,
  )
  const { body } = await fixture.admin('GET', '/v1/accounts')
  const id = /"id":"([^"]+)"/.exec(JSON.stringify(body))?.[1]
  const removal = await fixture.admin('DELETE', `/v1/accounts/${id}`)
  assert.equal(removal.status, 503)
  assert.match(JSON.stringify(removal.body), /state_unavailable/)
  const page = await fixture.connect(fixture.browser(), 'bob', 'bob-at-hub')
  assert.match(page.text, /Nothing was connected/)
  assert.doesNotMatch(page.text, /kms:|\.ts:/)
  kms.recover()
  assert.equal((await fixture.callAs('ada')).as, 'ada-at-hub')
})

test('accounts of users who are revoked while the key service is away are removed when it is back', async (t) => {
  const kms = await startKms(t)
  const keyURI = kms.uri(kms.add('SYMMETRIC_DEFAULT'))
  const fixture = await VaultFixture.start(t, providers, { vault: { keyURI }, env: kmsEnv(kms.url) })
  for (const user of ['ada', 'bob', 'eve']) await fixture.connect(fixture.browser(), user, `${user}-at-hub`)
  assert.equal((await fixture.callAs('ada')).as, 'ada-at-hub')
  const [token = ''] = fixture.seen()
  // Tokens that are in memory need no key: a restart empties it.
  await fixture.restart({})
  // Refused, so that the client does not retry by itself.
  kms.fail({ status: 400, code: 'DisabledException' })
  const decryptions = () => kms.requests.filter((one) => one.includes('Decrypt')).length
  const before = decryptions()
  const revocations = new Map<string, unknown>()
  for (const user of ['ada', 'bob']) {
    const { status, body } = await fixture.admin('POST', '/v1/revocations', { target: { user } })
    assert.equal(status, 201)
    revocations.set(user, Object(body).id)
  }
  const pending = async () => {
    const text = await (await fetch(`${fixture.url}/metrics`)).text()
    return /^plat_gateway_token_vault_pending_removals (\d+)$/m.exec(text)?.[1]
  }
  const users = async () => JSON.stringify((await fixture.admin('GET', '/v1/accounts')).body).match(/"user":"\w+"/g)
  await until(async () => (await fixture.written()).includes('could not be removed, will retry'), 'the failed removal')
  await until(async () => (await pending()) === '2', 'both to be pending')
  await until(() => decryptions() >= before + 2, 'an attempt for each')
  assert.equal((await users())?.length, 3)
  assert.equal(await fixture.askHub(token), 200)
  // A revocation that is lifted meanwhile leaves the account in place.
  assert.equal((await fixture.admin('DELETE', `/v1/revocations/${revocations.get('bob')}`)).status, 204)
  kms.recover()
  await until(async () => (await pending()) === '0', 'the removal')
  assert.deepEqual((await users())?.toSorted(), ['"user":"bob"', '"user":"eve"'])
  await until(async () => (await fixture.askHub(token)) === 401, 'the token to be revoked at the provider')
  const written = await fixture.written()
  assert.equal(written.match(/"action":"account.revoked"/g)?.length, 1)
  assert.equal(written.match(/could not be removed, will retry/g)?.length, 1, 'logs only the first failure')
  assert.equal(written.match(/the accounts of revoked users are removed/g)?.length, 1)
  assert.equal((await fixture.callAs('bob')).as, 'bob-at-hub')
})

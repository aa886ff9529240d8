import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { kmsEnv } from '@plat/key-services/testing/environments'
import { startKms } from '@plat/key-services/testing/kms-server'
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

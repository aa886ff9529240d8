import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { kmsEnv } from '@plat/key-services/testing/environments'
import { type KmsServer, startKms } from '@plat/key-services/testing/kms-server'
import { randomToken, startTestService } from '@plat/testkit/processes/service'
import { until } from '@plat/testkit/until'
import { createRemoteJWKSet, jwtVerify } from 'jose'

const JWT = 'urn:ietf:params:oauth:token-type:jwt'

/** A broker in a separate process whose tokens a key of `kms` signs. */
async function startBroker(t: TestContext, kms: KmsServer) {
  const signingKey = kms.uri(kms.add('ECC_NIST_EDWARDS25519'))
  const token = randomToken()
  const env = { ...kmsEnv(kms.url), PLAT_BROKER_TOKEN: token }
  const broker = await startTestService('identity', { flags: ['-signing-key', signingKey], env })
  t.after(() => broker.stop())
  const send = async (path: string, type: string, body: string) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': type }
    const response = await fetch(broker.url + path, { method: 'POST', headers, body })
    return { status: response.status, body: JSON.parse(await response.text()) }
  }
  const post = (path: string, body: object) => send(path, 'application/json', JSON.stringify(body))
  return {
    ...broker,
    signingKey,
    mint: (agent: string) =>
      post('/v1/token', { namespace: 'default', agent, session: `${agent}-1`, scopes: ['agents:two'] }),
    verify: async (minted: string) => (await post('/v1/token/verify', { token: minted })).body.valid,
    delegate: (subject: string, actor: string) => {
      const tokens = { subject_token: subject, subject_token_type: JWT, actor_token: actor, actor_token_type: JWT }
      const grant_type = 'urn:ietf:params:oauth:grant-type:token-exchange'
      const form = new URLSearchParams({ grant_type, ...tokens })
      return send('/v1/exchange', 'application/x-www-form-urlencoded', form.toString())
    },
  }
}

test('a broker whose key is in KMS mints, verifies and exchanges; while KMS is away it refuses with 503, and then works again', async (t) => {
  const kms = await startKms(t)
  const { url, signingKey, mint, verify, delegate, log } = await startBroker(t, kms)
  const [one, two] = [(await mint('one')).body.token, (await mint('two')).body.token]
  const keys = createRemoteJWKSet(new URL(`${url}/.well-known/jwks.json`))
  assert.equal((await jwtVerify(one, keys)).payload.plat_agent, 'one')
  assert.equal(await verify(one), true)
  assert.equal((await delegate(one, two)).status, 200)

  kms.fail('cut')
  const refused = await Promise.all([mint('one'), delegate(one, two)])
  for (const { status, body } of refused) {
    assert.equal(status, 503)
    assert.doesNotMatch(JSON.stringify(body), /kms:|127\.0\.0\.1| at /)
  }
  assert.equal(await verify(one), true, 'tokens are verified without the key service')
  const ready = await fetch(`${url}/readyz`)
  assert.deepEqual([ready.status, await ready.json()], [200, { status: 'ready' }])

  assert.equal(refused[1]?.body.error, 'temporarily_unavailable')
  kms.recover()
  const { body: again } = await delegate((await mint('one')).body.token, two)
  assert.equal((await jwtVerify(again.access_token, keys)).payload.plat_agent, 'two')
  const ofKey = () => log().filter((line) => line.includes(signingKey))
  await until(() => ofKey().some((line) => line.includes('the key service works again')), 'the line of the recovery')
  const lines = ofKey()
  assert.equal(lines.filter((line) => line.includes('the key service failed')).length, 1)
  assert.match(lines.join(), /"operation":"sign","error":"[^"]*KMS is not reachable.*the key service works again/)
})

test('a broker whose key service is away does not start, and names the flag and the reason in one line', async (t) => {
  const kms = await startKms(t)
  kms.fail('cut')
  await assert.rejects(startBroker(t, kms), ({ message }: Error) => {
    assert.match(
      message,
      /^plat-identity ended with 1: -signing-key: kms:\/\/aws\/eu-central-1\/\S+: KMS is not reachable.*\n$/,
    )
    return true
  })
})

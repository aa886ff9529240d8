import assert from 'node:assert/strict'
import { createPrivateKey } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { type AlgorithmName, type LocalSigner, signerOf } from '@plat/keys'
import { testProver } from '@plat/testkit/dpop'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { createVerifier, isFault, jwksSource, signJws } from '@plat/tokens'
import { claimsIn, json, startTestBroker, type TestBroker } from '../testing/broker.ts'
import { newKeyPem } from '../testing/keys.ts'

const twoTenants = {
  tenants: [
    { name: 'red', namespaces: ['red-1', 'red-2'] },
    { name: 'blue', namespaces: ['blue-1'] },
  ],
}

async function setUp(t: TestContext, algorithm: AlgorithmName = 'EdDSA') {
  const dir = tempFolder()
  const file = (name: string) => path.join(dir, name)
  const pems = { 'key.pem': newKeyPem(algorithm), 'red.pem': newKeyPem(algorithm), 'blue.pem': newKeyPem(algorithm) }
  for (const [name, pem] of Object.entries(pems)) await fs.writeFile(file(name), pem)
  await fs.writeFile(file('tenants.json'), JSON.stringify(twoTenants))
  const start = () =>
    startTestBroker(t, {
      signAlg: algorithm,
      signingKey: file('key.pem'),
      tenantsFile: file('tenants.json'),
      tenantKeysDir: dir,
      tenantReloadMs: 1000,
    })
  return { file, pems, start }
}

async function publishedKids({ identity }: TestBroker): Promise<readonly string[]> {
  const { keys } = await json(await fetch(`${identity.url}/.well-known/jwks.json`))
  assert.ok(Array.isArray(keys))
  return keys.map((key) => String(key.kid))
}

async function mintStatus({ post }: TestBroker, namespace: string): Promise<number> {
  return (await post('/v1/token', { namespace, agent: 'assistant', session: 's1' })).status
}

/** Advances the clock until the broker has read the files that the test changed. */
function untilRead({ clock }: TestBroker, seen: () => Promise<boolean>): Promise<void> {
  return until(seen, 'the change of a file', () => clock.advance(1000))
}

test('each tenant has its own key, the others share that of the broker, and all are published', async (t) => {
  // Shows D1.flag.tenants-file, D1.flag.tenant-keys-dir, D1.jwks.tenantKeys, D1.verify.checks.tenantKey.
  const { start } = await setUp(t)
  const broker = await start()
  const [red1, red2, blue, other] = await Promise.all(
    ['red-1', 'red-2', 'blue-1', 'default'].map((namespace) => broker.mint({ namespace })),
  )
  assert.ok(red1 && red2 && blue && other)
  assert.equal(red1.kid, red2.kid)
  assert.equal(new Set([red1.kid, blue.kid, other.kid]).size, 3)
  assert.deepEqual((await publishedKids(broker)).toSorted(), [red1.kid, blue.kid, other.kid].toSorted())
  for (const { token } of [red1, blue, other]) assert.equal((await broker.verify(token)).valid, true)
})

test('the key of one tenant vouches for no other, and that of the broker for no tenant', async (t) => {
  // Shows D1.verify.checks.tenantKey.
  const { pems, start } = await setUp(t)
  const broker = await start()
  const signers = Object.values(pems).map((pem) => signerOfPem(pem))
  for (const namespace of ['red-1', 'blue-1', 'default']) {
    const { token, kid } = await broker.mint({ namespace })
    for (const signer of signers) {
      const forged = signJws(signer, {}, claimsIn(token))
      const { valid, error } = await broker.verify(forged)
      assert.equal(valid, signer.kid === kid, namespace)
      if (valid === false) assert.equal(error, 'token is signed by a key that is not of its tenant')
    }
  }
})

test('a verifier with the key document binds keys to tenants as the broker does', async (t) => {
  const { file, pems, start } = await setUp(t)
  const broker = await start()
  const keys = jwksSource({
    url: `${broker.identity.url}/.well-known/jwks.json`,
    refreshSeconds: 300,
    dialer: {
      async fetchBytes(url) {
        const response = await fetch(url)
        return { status: response.status, bytes: Buffer.from(await response.arrayBuffer()) }
      },
    },
    clock: broker.clock,
    log: { info: () => {}, warn: () => {} },
  })
  t.after(() => keys.close())
  await keys.start()
  const verifier = createVerifier({ keys, audience: 'plat-gateway', leewaySeconds: 0, clock: broker.clock })
  for (const [namespace, tenant] of Object.entries({ 'red-1': 'red', 'blue-1': 'blue', default: '' })) {
    const { token, kid } = await broker.mint({ namespace })
    for (const signer of Object.values(pems).map((pem) => signerOfPem(pem))) {
      const answer = await verifier.verify(signJws(signer, {}, claimsIn(token)))
      if (signer.kid === kid) assert.equal(isFault(answer) ? answer.message : answer.tenant, tenant)
      else assert.equal(isFault(answer) && answer.reason, 'binding', namespace)
    }
  }
  await fs.rm(file('red.pem'))
  await untilRead(broker, async () => (await mintStatus(broker, 'red-1')) === 503)
  await keys.start()
  const answer = await verifier.verify(
    signJws(signerOfPem(pems['key.pem']), {}, claimsIn((await broker.mint({})).token)),
  )
  assert.ok(!isFault(answer))
  assert.equal(keys.tenants.ofNamespace('red-1'), 'red', 'the namespace stays reserved while its tenant has no key')
})

test('a tenant without its key is refused with 503 everywhere until the key is back; other tenants are unaffected', async (t) => {
  // Shows D1.error.token.503.tenantKey, D1.error.bind.503.tenantKey, D1.error.exchange.503.temporarily_unavailable,
  // D1.flag.tenant-reload, D1.limit.tenantKeyReload.
  const { file, pems, start } = await setUp(t)
  const broker = await start()
  const { token } = await broker.mint({ namespace: 'red-1' })
  await fs.rm(file('red.pem'))
  await untilRead(broker, async () => (await mintStatus(broker, 'red-1')) === 503)
  const proof = testProver({ clock: broker.clock }).proof(`${broker.identity.url}/v1/token/bind`, token)
  assert.deepEqual(await outcome(broker.bind(token, proof)), [503, 'temporarily_unavailable'])
  const exchanged = broker.exchange({ subject_token: token, audience: 'any' })
  assert.deepEqual(await outcome(exchanged), [503, 'temporarily_unavailable'])
  const delegated = broker.exchange({ subject_token: token, actor_token: token })
  assert.deepEqual(await outcome(delegated), [503, 'temporarily_unavailable'])
  assert.deepEqual(await broker.verify(token), {
    valid: false,
    error: "the signing key of the token's tenant is not available",
  })
  assert.equal((await publishedKids(broker)).length, 2)
  assert.deepEqual([await mintStatus(broker, 'blue-1'), await mintStatus(broker, 'default')], [200, 200])
  await fs.writeFile(file('red.pem'), pems['red.pem'])
  await untilRead(broker, async () => (await mintStatus(broker, 'red-1')) === 200)
  assert.equal((await broker.verify(token)).valid, true)
})

test('a malformed key, one of another algorithm, or a shared one is not accepted', async (t) => {
  const { file, pems, start } = await setUp(t)
  const bad = { broken: 'x', 'another algorithm': newKeyPem('ES256'), "the broker's": pems['key.pem'] }
  for (const [name, pem] of Object.entries(bad)) {
    await fs.writeFile(file('red.pem'), pem)
    const broker = await start()
    assert.deepEqual([await mintStatus(broker, 'red-1'), await mintStatus(broker, 'default')], [503, 200], name)
  }
  await fs.writeFile(file('red.pem'), pems['blue.pem'])
  const broker = await start()
  assert.deepEqual([await mintStatus(broker, 'red-1'), await mintStatus(broker, 'blue-1')], [503, 503])
  assert.ok(broker.lines.some((line) => line.includes('two tenants have the same key')))
})

test('tenants are reloaded: an added one, a removed one, and an invalid file', async (t) => {
  // Shows D1.flag.tenant-reload.
  const { file, start } = await setUp(t)
  const broker = await start()
  const kidOf = async (namespace: string) => (await broker.mint({ namespace })).kid
  const own = await kidOf('default')
  await fs.writeFile(file('green.pem'), newKeyPem('EdDSA'))
  const next = { tenants: [twoTenants.tenants[0], { name: 'green', namespaces: ['default'] }] }
  await fs.writeFile(file('tenants.json'), JSON.stringify(next))
  await untilRead(broker, async () => (await kidOf('default')) !== own)
  assert.equal(await kidOf('blue-1'), own, 'a namespace that is in no tenant any more uses the key of the broker')
  await fs.writeFile(file('tenants.json'), '{"tenants": []')
  await untilRead(broker, async () => broker.lines.some((line) => line.includes('tenants could not be reloaded')))
  assert.notEqual(await kidOf('default'), own)
})

test('tenants sign with ML-DSA where the broker does', async (t) => {
  const { start } = await setUp(t, 'ML-DSA-44')
  const broker = await start()
  const { token } = await broker.mint({ namespace: 'red-1' })
  assert.equal((await broker.verify(token)).valid, true)
})

test('a tenants file that is wrong refuses to start', async (t) => {
  const { file, start } = await setUp(t)
  await fs.writeFile(file('tenants.json'), '{"tenants": [{"name": "../red", "namespaces": []}]}')
  await assert.rejects(start(), /-tenants-file: .*tenants\[0\]\.name: must be lower-case/)
  await fs.rm(file('tenants.json'))
  await assert.rejects(start(), /-tenants-file: .* is missing/)
})

async function outcome(answer: ReturnType<TestBroker['bind']>): Promise<readonly unknown[]> {
  const { status, body } = await answer
  return [status, body.error]
}

function signerOfPem(pem: string): LocalSigner {
  return signerOf(createPrivateKey(pem), 'test')
}

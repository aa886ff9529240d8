import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { systemClock, TestClock } from '@plat/core'
import { KeyServiceError } from '@plat/keys'
import { silentLog } from '@plat/process'
import { DATA_KEY_MS, DATA_KEY_USES } from './cipher.ts'
import { DESCRIBE_EVERY_MS } from './store.ts'
import { startAzure } from './testing/azure-server.ts'
import { azureEnv, helperEnv, kmsEnv } from './testing/environments.ts'
import { startKms } from './testing/kms-server.ts'
import { servicesOf } from './testing/services.ts'

const BYTES = Buffer.from('what is signed')

/** Asserts a `KeyServiceError` of one line. */
async function fails(work: Promise<unknown>, kind: KeyServiceError['kind'], message: RegExp): Promise<void> {
  await assert.rejects(work, (error) => {
    assert.ok(error instanceof KeyServiceError, String(error))
    assert.equal(error.kind, kind, error.message)
    assert.match(error.message, message)
    assert.match(error.message, /^.{1,300}$/)
    return true
  })
}

test('throttling, failures of the service and cut connections are retried, up to four attempts', async (t) => {
  const [kms, azure] = [await startKms(t), await startAzure(t)]
  azure.add('k', 'EC')
  const keys = servicesOf(t, { ...kmsEnv(kms.url), ...azureEnv(azure.url) })
  const id = kms.add('ECC_NIST_P256')
  const [one, two] = [await keys.openSigner(kms.uri(id)), await keys.openSigner(azure.uri('k'))]
  const throttled = { status: 400, code: 'ThrottlingException' }
  kms.faults.push(throttled, { status: 500, code: 'KMSInternalException' }, 'cut')
  azure.faults.push({ status: 429, code: 'Throttled' }, { status: 503, code: 'Unavailable' }, 'cut')
  for (const signer of [one, two])
    assert.ok(signer.publicKey.algorithm.verify(BYTES, signer.publicKey.key, await signer.sign(BYTES)))
  assert.deepEqual(kms.requests, ['GetPublicKey', 'Sign', 'Sign', 'Sign', 'Sign'])
  kms.faults.push(throttled, throttled, throttled, throttled)
  await fails(Promise.resolve(one.sign(BYTES)), 'unavailable', /ThrottlingException/)
  assert.equal(kms.faults.length, 0)
  assert.ok(await one.sign(BYTES), 'it signs again at once')
  assert.deepEqual(
    keys.calls.map(({ service, operation, outcome }) => `${service} ${operation} ${outcome}`),
    ['kms describe ok', 'azurekv describe ok', 'kms sign ok', 'azurekv sign ok', 'kms sign unavailable', 'kms sign ok'],
  )
})

test('what is refused is not retried: a disabled key, a missing permission', async (t) => {
  const [kms, azure] = [await startKms(t), await startAzure(t)]
  const version = azure.add('k', 'EC')
  const keys = servicesOf(t, { ...kmsEnv(kms.url), ...azureEnv(azure.url) })
  const id = kms.add('ECC_NIST_P256')
  const [one, two] = [await keys.openSigner(kms.uri(id)), await keys.openSigner(azure.uri('k'))]
  const key = kms.keys.get(id) ?? assert.fail()
  key.state = 'Disabled'
  version.enabled = false
  await fails(Promise.resolve(one.sign(BYTES)), 'refused', /Sign: KMS answered 400 DisabledException$/)
  await fails(Promise.resolve(two.sign(BYTES)), 'refused', /Azure answered 403 Forbidden$/)
  assert.equal(kms.requests.length, 2)
  key.state = 'Enabled'
  kms.faults.push({ status: 400, code: 'AccessDeniedException' })
  await fails(Promise.resolve(one.sign(BYTES)), 'refused', /AccessDeniedException$/)
  assert.ok(await one.sign(BYTES), 'an enabled key signs again')
})

test('a signature that does not verify, and an answer for another key, are refused', async (t) => {
  const [kms, azure] = [await startKms(t), await startAzure(t)]
  azure.add('k', 'RSA')
  const keys = servicesOf(t, { ...kmsEnv(kms.url), ...azureEnv(azure.url) })
  const other = kms.add('ECC_NIST_P256')
  const [one, two] = [await keys.openSigner(kms.uri(kms.add('ECC_NIST_P256'))), await keys.openSigner(azure.uri('k'))]
  const last = await keys.openCipher(kms.uri(kms.add('SYMMETRIC_DEFAULT')))
  const damaged = randomBytes(70).toString('base64')
  kms.faults.push((response) => ({ ...response, Signature: damaged }))
  await fails(Promise.resolve(one.sign(BYTES)), 'refused', /does not verify with the public key/)
  kms.faults.push((response) => ({ ...response, KeyId: other }))
  await fails(Promise.resolve(one.sign(BYTES)), 'refused', /KMS answered for another key$/)
  azure.faults.push((response) => ({ ...response, value: randomBytes(256).toString('base64url') }))
  await fails(Promise.resolve(two.sign(BYTES)), 'refused', /does not verify/)
  azure.faults.push((response) => ({ ...response, kid: 'https://tests.vault.azure.net/keys/other/1' }))
  await fails(Promise.resolve(two.sign(BYTES)), 'refused', /Azure answered for another key$/)
  kms.faults.push((response) => ({ ...response, CiphertextBlob: damaged }))
  await fails(Promise.resolve(last.wrap(randomBytes(32))), 'refused', /does not decrypt what it encrypted$/)
  kms.faults.push(
    (response) => response,
    (response) => ({ ...response, Plaintext: randomBytes(32).toString('base64') }),
  )
  await fails(Promise.resolve(last.wrap(randomBytes(32))), 'refused', /does not decrypt what it encrypted$/)
})

test('an alias that names another key later: the old key signs until the public half is fetched again', async (t) => {
  const kms = await startKms(t)
  const clock = new TestClock(systemClock.now())
  const keys = servicesOf(t, kmsEnv(kms.url), { clock })
  const [before, after] = [kms.add('ECC_NIST_P256'), kms.add('ECC_NIST_P256')]
  kms.aliases.set('alias/audit', before)
  const uri = kms.uri('alias/audit')
  const signer = await keys.openSigner(uri)
  kms.aliases.set('alias/audit', after)
  const signature = await signer.sign(BYTES)
  assert.ok(signer.publicKey.algorithm.verify(BYTES, signer.publicKey.key, signature))
  assert.equal(await keys.openSigner(uri), signer)
  await clock.advance(DESCRIBE_EVERY_MS)
  const next = await keys.openSigner(uri)
  assert.notEqual(next.kid, signer.kid)
  assert.equal(next.kid, (await keys.openSigner(kms.uri(after))).kid)
  assert.ok(await next.sign(BYTES))
})

test('a service that does not respond holds no caller for more than 10 s, and the queue has a total and shares', async (t) => {
  const kms = await startKms(t)
  const clock = new TestClock(systemClock.now())
  const keys = servicesOf(t, kmsEnv(kms.url), { clock })
  const signer = await keys.openSigner(kms.uri(kms.add('ECC_NIST_P256')))
  kms.faults.push(...Array.from({ length: 300 }, () => 'hang' as const))
  const outcomes = new Map<string, number>()
  const sign = (caller: string) =>
    Promise.resolve(signer.sign(BYTES, caller)).catch((error: unknown) => {
      const kind = error instanceof KeyServiceError ? error.kind : 'another'
      outcomes.set(`${caller} ${kind}`, (outcomes.get(`${caller} ${kind}`) ?? 0) + 1)
    })
  const waiting = Array.from({ length: 100 }, () => sign('greedy'))
  waiting.push(sign('modest'))
  await Promise.all(waiting.slice(64, 100))
  assert.deepEqual([...outcomes], [['greedy overloaded', 36]], 'one caller has its share only')
  waiting.push(...Array.from({ length: 300 }, (_, at) => sign(`caller ${at}`)))
  await Promise.all(waiting.slice(-109))
  assert.equal(
    [...outcomes.values()].reduce((sum, count) => sum + count),
    36 + 300 - (256 - 65),
  )
  await clock.advance(10_000)
  await Promise.all(waiting)
  assert.equal(outcomes.get('greedy unavailable'), 64)
  assert.equal(outcomes.get('modest unavailable'), 1)
  kms.faults.length = 0
  kms.release()
  assert.ok(await signer.sign(BYTES), 'once the service is back it signs')
})

test('the service wraps one data key for many keys, and a new one after an hour or 10,000 keys', async (t) => {
  const kms = await startKms(t)
  const clock = new TestClock(systemClock.now())
  const cipher = await servicesOf(t, kmsEnv(kms.url), { clock }).openCipher(kms.uri(kms.add('SYMMETRIC_DEFAULT')))
  const encrypted = () => kms.requests.filter((action) => action === 'Encrypt').length
  const first = await Promise.all(Array.from({ length: 20 }, () => cipher.wrap(randomBytes(32))))
  assert.equal(encrypted(), 1)
  await clock.advance(DATA_KEY_MS)
  await cipher.wrap(randomBytes(32))
  assert.equal(encrypted(), 2)
  for (let count = 0; count < DATA_KEY_USES; count++) await cipher.wrap(randomBytes(32))
  assert.equal(encrypted(), 3)
  const decrypted = () => kms.requests.filter((action) => action === 'Decrypt').length
  const before = decrypted()
  await Promise.all(first.map((wrapped) => cipher.unwrap(wrapped)))
  assert.equal(decrypted(), before + 1, 'keys under one data key are unwrapped by one request')
  await clock.advance(DATA_KEY_MS)
  kms.faults.push('cut', { status: 400, code: 'DisabledException' })
  const [wrapped = new Uint8Array()] = first
  const unwrapping = Promise.resolve(cipher.unwrap(wrapped))
  void (async () => {
    for (let at = 0; at < 50; at++) await clock.advance(100)
  })()
  await fails(unwrapping, 'refused', /DisabledException/)
  assert.ok(await cipher.unwrap(wrapped), 'a failure is not remembered')
})

test('a helper that crashes, is silent or breaks the protocol fails its requests only, and is started again', async (t) => {
  const env = await helperEnv()
  const keys = servicesOf(t, env)
  const uri = (object: string) => `pkcs11:token=plat;object=${object}`
  const signer = await keys.openSigner(uri('p256'))
  await fails(keys.openSigner(uri('crash')), 'unavailable', /the PKCS#11 helper has ended$/)
  await fails(
    keys.openSigner(uri('noise')),
    'unavailable',
    /the PKCS#11 helper sent a response that belongs to no request$/,
  )
  const clock = new TestClock(systemClock.now())
  const silent = fails(servicesOf(t, env, { clock }).openSigner(uri('hang')), 'unavailable', /within 10 s$/)
  await clock.advance(10_000)
  await silent
  await fails(
    servicesOf(t, { ...env, PLAT_PKCS11_HELPER: '/nowhere/helper' }).openSigner(uri('p256')),
    'unavailable',
    /cannot be started/,
  )
  await fails(
    servicesOf(t, { ...env, PLAT_PKCS11_HELPER: '/bin/cat' }).openSigner(uri('p256')),
    'unavailable',
    /does not begin with/,
  )
  // The keys of the test's helper are new after a crash: the signature is by another key.
  await fails(Promise.resolve(signer.sign(BYTES)), 'refused', /does not verify/)
})

test('a helper receives no secret of plat, and what it says is one short line', async (t) => {
  const env = {
    ...(await helperEnv()),
    PLAT_ADMIN_TOKEN: 'secret-1',
    AWS_SECRET_ACCESS_KEY: 'secret-2',
    PLAT_PKCS11_MODULE: '/m.so',
  }
  const keys = servicesOf(t, env)
  const opened = await keys.openSigner('pkcs11:object=pin').catch((error: unknown) => error)
  assert.ok(opened instanceof KeyServiceError)
  assert.ok(!opened.message.includes('secret-'))
  assert.ok(opened.message.length <= 300)
})

test('credentials that are missing are named, and no body of a response reaches a message', async (t) => {
  const kms = await startKms(t)
  const uri = kms.uri(kms.add('ECC_NIST_P256'))
  await fails(servicesOf(t, { AWS_ENDPOINT_URL_KMS: kms.url }).openSigner(uri), 'unavailable', /none of AWS now/)
  const wrong = { ...kmsEnv(kms.url), AWS_SECRET_ACCESS_KEY: 'wrong' }
  await fails(
    servicesOf(t, wrong).openSigner(uri),
    'refused',
    /GetPublicKey: KMS answered 400 InvalidSignatureException$/,
  )
  await fails(
    servicesOf(t, { ...kmsEnv(kms.url), AWS_ENDPOINT_URL_KMS: 'http://127.0.0.1:9' }, { log: silentLog }).openSigner(
      uri,
    ),
    'unavailable',
    /KMS is not reachable/,
  )
})

test('ed25519 and ML-DSA in KMS sign up to 4096 bytes, and other curves are refused by name', async (t) => {
  const kms = await startKms(t)
  const keys = servicesOf(t, kmsEnv(kms.url))
  const signer = await keys.openSigner(kms.uri(kms.add('ECC_NIST_EDWARDS25519')))
  assert.ok(await signer.sign(Buffer.alloc(4096)))
  await fails(Promise.resolve(signer.sign(Buffer.alloc(4097))), 'refused', /at most 4096 bytes/)
  await fails(keys.openSigner(kms.uri(kms.add('ECC_NIST_P384'))), 'refused', /holds a key of spec ECC_NIST_P384/)
  await fails(keys.openCipher(kms.uri(kms.add('RSA_2048'))), 'refused', /holds a key of spec RSA_2048 for SIGN_VERIFY/)
})

test('a key service that names a key, type or curve at great length makes no long error', () => {
  assert.equal(new KeyServiceError('refused', `holds a key of spec ${'x'.repeat(100_000)}`).message.length, 500)
})

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import path from 'node:path'
import { after, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { isObject, systemClock } from '@plat/core'
import { createDialer } from '@plat/http'
import { KeyServiceError, readKeyUri } from '@plat/keys'
import { silentLog } from '@plat/process'
import { freePort } from '@plat/testkit/local'
import { pythonWith } from '@plat/testkit/processes/python'
import { Kms } from './kms.ts'
import { encryptionConformance } from './testing/conformance.ts'
import { kmsEnv } from './testing/environments.ts'
import { servicesOf } from './testing/services.ts'

const python = await pythonWith(path.join(import.meta.dirname, 'testing/requirements.txt'))
const REGION = 'eu-central-1'
/** Longest start of moto, in milliseconds: it loads the definitions of many services. */
const START_MS = 60_000

/** The KMS of `moto`, an implementation of the AWS API by others. */
class Moto {
  readonly url: string

  constructor(url: string) {
    this.url = url
  }

  async call(action: string, members: object): Promise<Readonly<Record<string, unknown>>> {
    const response = await fetch(this.url, {
      method: 'POST',
      headers: {
        'content-type': 'application/x-amz-json-1.1',
        'x-amz-target': `TrentService.${action}`,
        authorization: `AWS4-HMAC-SHA256 Credential=a/20260101/${REGION}/kms/aws4_request, SignedHeaders=host, Signature=0`,
      },
      body: JSON.stringify(members),
    })
    const body: unknown = await response.json()
    assert.ok(response.ok, `${action}: ${response.status} ${JSON.stringify(body)}`)
    return isObject(body) ? body : {}
  }

  async key(KeySpec: string, KeyUsage: string): Promise<string> {
    const { KeyMetadata } = await this.call('CreateKey', { KeySpec, KeyUsage })
    assert.ok(isObject(KeyMetadata) && typeof KeyMetadata.KeyId === 'string')
    return KeyMetadata.KeyId
  }

  uri(key: string): string {
    return `kms://aws/${REGION}/${key}`
  }
}

const skip = 'missing' in python ? python.missing : false
const moto = skip === false ? await startMoto() : null

/** One for all tests: it needs seconds to start. */
async function startMoto(): Promise<Moto> {
  assert.ok('path' in python)
  const port = await freePort()
  const args = ['-m', 'moto.server', '-H', '127.0.0.1', '-p', String(port)]
  const child = spawn(python.path, args, { stdio: 'ignore' })
  after(() => void child.kill('SIGKILL'))
  const url = `http://127.0.0.1:${port}/`
  const isUp = async () =>
    await fetch(url).then(
      () => true,
      () => false,
    )
  for (const end = performance.now() + START_MS; !(await isUp()); await setTimeout(200))
    assert.ok(performance.now() < end, 'moto does not listen')
  return new Moto(url)
}

if (moto !== null) {
  encryptionConformance('KMS of moto', async (t) => {
    const encrypting = async () => moto.uri(await moto.key('SYMMETRIC_DEFAULT', 'ENCRYPT_DECRYPT'))
    return { keys: servicesOf(t, kmsEnv(moto.url)), encrypting: [await encrypting(), await encrypting()] }
  })
}

test('KMS of moto: what signs something else than the digest, as moto does, is refused before it is used', {
  skip,
}, async (t) => {
  // Shows D3.audit.keyURI.kms.
  assert.ok(moto !== null)
  const keys = servicesOf(t, kmsEnv(moto.url))
  const alias = `alias/plat/audit-${randomBytes(4).toString('hex')}`
  await moto.call('CreateAlias', { AliasName: alias, TargetKeyId: await moto.key('ECC_NIST_P256', 'SIGN_VERIFY') })
  for (const key of [alias, await moto.key('RSA_2048', 'SIGN_VERIFY')]) {
    const signer = await keys.openSigner(moto.uri(key))
    // moto has no MessageType DIGEST: it signs the digest as a message.
    await assert.rejects(async () => await signer.sign(Buffer.from('message')), /does not verify with the public key/)
    const uri = readKeyUri(moto.uri(key))
    assert.ok(uri.kind === 'kms')
    const signing = await kmsOf(moto.url).signingKey(uri, key)
    const signature = await signing.sign(Buffer.from('message'))
    const digest = createHash('sha256').update('message').digest()
    assert.ok(
      signer.publicKey.algorithm.verify(digest, signer.publicKey.key, signature),
      'it is a signature by this key',
    )
  }
  const secret = moto.uri(await moto.key('SYMMETRIC_DEFAULT', 'ENCRYPT_DECRYPT'))
  await assert.rejects(keys.openSigner(secret), KeyServiceError)
  await assert.rejects(keys.openCipher(moto.uri(alias)), KeyServiceError)
  await assert.rejects(keys.openSigner(moto.uri('1234abcd-12ab-34cd-56ef-1234567890ab')), /NotFoundException$/)
})

/** KMS without the verification of signatures. */
function kmsOf(url: string): Kms {
  const dialer = createDialer({ log: silentLog })
  after(() => dialer.close())
  const aws = async () => ({ accessKeyId: 'a', secretAccessKey: 'b', sessionToken: null })
  return new Kms({ dialer, clouds: { aws }, clock: systemClock, env: { AWS_ENDPOINT_URL_KMS: url }, domain: '' })
}

test('KMS of moto: a key that is disabled during use is refused, and works again once enabled', { skip }, async (t) => {
  assert.ok(moto !== null)
  const KeyId = await moto.key('SYMMETRIC_DEFAULT', 'ENCRYPT_DECRYPT')
  const keys = servicesOf(t, kmsEnv(moto.url))
  const cipher = await keys.openCipher(moto.uri(KeyId))
  const plain = randomBytes(32)
  const wrapped = await cipher.wrap(plain)
  await moto.call('DisableKey', { KeyId })
  await assert.rejects(keys.openCipher(moto.uri(KeyId)), /the key is in state Disabled$/)
  await moto.call('EnableKey', { KeyId })
  const later = await keys.openCipher(moto.uri(KeyId))
  assert.deepEqual(Buffer.from((await later.unwrap(wrapped)) ?? []), plain)
})

import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { json, startTestBroker } from '../testing/broker.ts'
import { newKeyPem } from '../testing/keys.ts'

test('-sign-alg signs with ML-DSA, publishes the key as RFC 9964 says, and verifies its tokens', async (t) => {
  // Shows D1.flag.sign-alg, D1.header.alg, D1.jwks.mlDsaKey, D1.jwks.members.
  const publicBytes = { 'ML-DSA-44': 1312, 'ML-DSA-65': 1952, 'ML-DSA-87': 2592 } as const
  for (const signAlg of ['ML-DSA-44', 'ML-DSA-65', 'ML-DSA-87'] as const) {
    const broker = await startTestBroker(t, { signAlg })
    const { token, kid } = await broker.mint()
    const header = JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString())
    assert.deepEqual(header, { alg: signAlg, kid })
    assert.equal((await broker.verify(token)).valid, true)
    const { keys } = await json(await fetch(`${broker.identity.url}/.well-known/jwks.json`))
    assert.ok(Array.isArray(keys) && keys.length === 1)
    const { pub, ...rest } = keys[0]
    assert.deepEqual(rest, { kty: 'AKP', alg: signAlg, kid, use: 'sig' })
    assert.equal(Buffer.from(pub, 'base64url').length, publicBytes[signAlg])
  }
})

test('a broker that goes over to ML-DSA still verifies what it signed before', async (t) => {
  // Shows D1.flag.previous-keys.
  const dir = tempFolder()
  const old = path.join(dir, 'old.pem')
  await fs.writeFile(old, newKeyPem('EdDSA'))
  const before = await startTestBroker(t, { signingKey: old })
  const { token, kid } = await before.mint()
  const after = await startTestBroker(t, { signAlg: 'ML-DSA-65', previousKeys: [dir] })
  assert.equal((await after.verify(token)).valid, true)
  const { keys } = await json(await fetch(`${after.identity.url}/.well-known/jwks.json`))
  assert.ok(Array.isArray(keys))
  assert.deepEqual(
    keys.map(({ alg }) => alg),
    ['ML-DSA-65', 'EdDSA'],
  )
  assert.equal(keys[1].kid, kid)
})

test('a signing key of another algorithm than -sign-alg refuses to start, and so does an unknown one', async (t) => {
  const file = path.join(tempFolder(), 'key.pem')
  await fs.writeFile(file, newKeyPem('EdDSA'))
  await assert.rejects(
    startTestBroker(t, { signingKey: file, signAlg: 'ML-DSA-65' }),
    /-signing-key: .* holds a key for EdDSA; -sign-alg is ML-DSA-65/,
  )
  await assert.rejects(startTestBroker(t, { signAlg: 'RS256' }), /-sign-alg RS256: must be one of EdDSA, ML-DSA-44/)
  await fs.writeFile(file, newKeyPem('RS256'))
  await assert.rejects(startTestBroker(t, { previousKeys: [file] }), /-previous-keys: .* holds a key for RS256/)
})

import assert from 'node:assert/strict'
import { createPrivateKey, generateKeyPairSync, verify } from 'node:crypto'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import {
  type AlgorithmName,
  ephemeralSigner,
  generateKeyFiles,
  openSigner,
  publicKeyOf,
  readPublicJwk,
  readPublicKeys,
  signerOf,
  thumbprint,
} from './index.ts'

async function tempDir(t: TestContext): Promise<string> {
  const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'plat-'))
  t.after(() => fs.rm(dir, { recursive: true }))
  return dir
}

test('the thumbprint of the Ed25519 key of RFC 8037 is the one of its appendix A.3', () => {
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' }
  assert.equal(thumbprint(jwk), 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k')
})

test('the thumbprint of the RSA key of RFC 7638 depends on its required members alone', () => {
  const n =
    '0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMs' +
    'tn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw'
  assert.equal(thumbprint({ kty: 'RSA', n, e: 'AQAB', alg: 'RS256' }), 'NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs')
})

test('the ML-DSA-44 key of RFC 9964, whose seed is all zeros, has the thumbprint of that document', () => {
  const algorithm = '300b0609608648016503040311'
  const der = Buffer.from(`3034020100${algorithm}04228020${'00'.repeat(32)}`, 'hex')
  const key = publicKeyOf(createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }))
  assert.equal(key?.kid, 'T4xl70S7MT6Zeq6r9V9fPJGVn76wfnXJ21-gyo0Gu6o')
  assert.match(key.jwk.pub ?? '', /^unH59k4Ru.*ndjbDQ$/)
})

test('the Ed25519 key of RFC 8037 signs what its appendix A.4 says', () => {
  const d = 'nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A'
  const jwk = { kty: 'OKP', crv: 'Ed25519', d, x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' }
  const signer = signerOf(createPrivateKey({ format: 'jwk', key: jwk }), 'RFC 8037')
  const signature = signer.sign(Buffer.from('eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc'))
  assert.equal(
    Buffer.from(signature).toString('base64url'),
    'hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg',
  )
})

test('a generated pair signs through its path and its URI, and pub.pem verifies', async (t) => {
  const dir = await tempDir(t)
  const { keyPath, pubPath } = await generateKeyFiles(path.join(dir, 'keys'))
  assert.equal((await fs.stat(keyPath)).mode & 0o777, 0o600)
  const [pub] = readPublicKeys(await fs.readFile(pubPath, 'utf8'), pubPath)
  assert.ok(pub)
  for (const uri of [keyPath, pathToFileURL(keyPath).href]) {
    const signer = await openSigner(uri)
    assert.equal(signer.alg, 'EdDSA')
    assert.equal(signer.kid, pub.kid)
    const bytes = Buffer.from('signed')
    assert.ok(verify(null, bytes, pub.key, signer.sign(bytes)))
  }
  assert.deepEqual((await fs.readdir(path.join(dir, 'keys'))).sort(), ['key.pem', 'pub.pem'])
})

test('a key is never overwritten', async (t) => {
  const dir = await tempDir(t)
  const { keyPath } = await generateKeyFiles(dir)
  const before = await fs.readFile(keyPath, 'utf8')
  await assert.rejects(generateKeyFiles(dir), /key\.pem: exists already/)
  assert.equal(await fs.readFile(keyPath, 'utf8'), before)
})

test('a private JWK signs as well', async (t) => {
  const dir = await tempDir(t)
  const { privateKey } = generateKeyPairSync('ed25519')
  const file = path.join(dir, 'key.json')
  await fs.writeFile(file, JSON.stringify(privateKey.export({ format: 'jwk' })))
  assert.equal((await openSigner(file)).kid, publicKeyOf(privateKey)?.kid)
})

test('a P-256 key signs ES256 in the JOSE form', () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const found = publicKeyOf(privateKey)
  assert.ok(found)
  assert.equal(found.algorithm.name, 'ES256')
  const signature = found.algorithm.sign(Buffer.from('x'), privateKey)
  assert.equal(signature.length, 64)
  assert.ok(found.algorithm.verify(Buffer.from('x'), found.key, signature))
})

test('keys elsewhere, other schemes and other key types are refused in one line', async (t) => {
  const dir = await tempDir(t)
  await assert.rejects(openSigner('kms://aws/eu-central-1/alias/x'), /only keys in files can be used here/)
  await assert.rejects(openSigner('pkcs11:token=x'), /names no key: object or id is required/)
  await assert.rejects(openSigner('https://host/key.pem'), /unknown scheme/)
  await assert.rejects(openSigner('file://host/key.pem'), /write file:\/\/\/absolute\/path/)
  await assert.rejects(openSigner(path.join(dir, 'none.pem')), /none\.pem: cannot be read \(ENOENT\)/)
  const file = path.join(dir, 'ed448.pem')
  await fs.writeFile(file, generateKeyPairSync('ed448').privateKey.export({ format: 'pem', type: 'pkcs8' }))
  await assert.rejects(openSigner(file), /keys of type ed448: not built yet/)
})

test('a malformed key file is refused without quoting it', async (t) => {
  const file = path.join(await tempDir(t), 'key.pem')
  await fs.writeFile(file, '-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n')
  await assert.rejects(openSigner(file), (error) => error instanceof Error && !error.message.includes('c2VjcmV0'))
})

test('an untrusted JWK is accepted only when it is a supported public key', () => {
  const good = ephemeralSigner().publicJwk
  assert.ok(readPublicJwk({ ...good, use: 'sig', alg: 'EdDSA', kid: 'any' }))
  const refused: Record<string, unknown> = {
    'private member': { ...good, d: good.x },
    'another use': { ...good, use: 'enc' },
    'another operation': { ...good, key_ops: ['encrypt'] },
    'another alg': { ...good, alg: 'Ed25519' },
    X25519: { ...good, crv: 'X25519' },
    padding: { ...good, x: `${good.x}=` },
    'unused bits': { ...good, x: `${good.x?.slice(0, 42)}B` },
    symmetric: { kty: 'oct', k: 'AAAA' },
    'no point': { kty: 'EC', crv: 'P-256', x: 'A'.repeat(43), y: 'A'.repeat(43) },
    'not an object': 'x',
  }
  for (const [name, jwk] of Object.entries(refused)) assert.equal(readPublicJwk(jwk), null, name)
})

test('PEM files may hold several keys; one invalid block refuses the file', () => {
  const pems = [1, 2].map(() => generateKeyPairSync('ed25519').publicKey.export({ format: 'pem', type: 'spki' }))
  assert.equal(readPublicKeys(pems.join('\n'), 'x').length, 2)
  const odd = generateKeyPairSync('ed448').publicKey.export({ format: 'pem', type: 'spki' })
  assert.throws(
    () => readPublicKeys(`${pems[0]}${odd}`, 'keys.pem'),
    /keys\.pem: holds a key of a type that is not built/,
  )
  assert.throws(() => readPublicKeys('nothing', 'keys.pem'), /keys\.pem: holds no key/)
})

const EVERY: readonly AlgorithmName[] = ['EdDSA', 'ES256', 'RS256', 'ML-DSA-44', 'ML-DSA-65', 'ML-DSA-87']

test('a key of every algorithm signs, verifies, and survives PEM and JWK unchanged', async (t) => {
  const dir = await tempDir(t)
  for (const name of EVERY) {
    const { privateKey } = newKeyPair(name)
    for (const [file, text] of [
      ['key.pem', privateKey.export({ format: 'pem', type: 'pkcs8' }).toString()],
      ['key.json', JSON.stringify(privateKey.export({ format: 'jwk' }))],
    ] as const) {
      await fs.writeFile(path.join(dir, file), text)
      const signer = await openSigner(path.join(dir, file))
      assert.equal(signer.alg, name)
      const read = readPublicJwk({ ...signer.publicJwk, use: 'sig', alg: name })
      assert.ok(read, name)
      assert.equal(read.kid, signer.kid)
      const bytes = Buffer.from('signed')
      assert.ok(read.algorithm.verify(bytes, read.key, signer.sign(bytes)), name)
      assert.equal(read.algorithm.verify(Buffer.from('other'), read.key, signer.sign(bytes)), false, name)
    }
  }
})

test('a key is accepted for its own algorithm only', () => {
  for (const name of EVERY) {
    const { publicJwk } = ephemeralSigner(name)
    for (const other of EVERY) {
      const read = readPublicJwk({ ...publicJwk, alg: other })
      assert.equal(read !== null, other === name, `${name} as ${other}`)
    }
  }
})

test('a JWK that encodes the same key differently is refused, since its thumbprint would differ', () => {
  const [rsa, mldsa] = [ephemeralSigner('RS256').publicJwk, ephemeralSigner('ML-DSA-44').publicJwk]
  const bytes = Buffer.from(rsa.n ?? '', 'base64url')
  assert.equal(readPublicJwk({ ...rsa, n: Buffer.concat([Buffer.alloc(1), bytes]).toString('base64url') }), null)
  assert.equal(readPublicJwk({ ...rsa, e: 'AAEAAQ' }), null)
  assert.equal(readPublicJwk({ ...mldsa, pub: `${mldsa.pub}=` }), null)
  assert.equal(readPublicJwk({ ...mldsa, pub: mldsa.pub?.slice(0, -4) }), null)
  assert.equal(readPublicJwk({ kty: 'AKP', pub: mldsa.pub }), null, 'RFC 9964: alg is required')
})

test('an RSA key below 2,048 bits is refused', () => {
  assert.equal(publicKeyOf(generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey), null)
})

function newKeyPair(name: AlgorithmName) {
  if (name === 'EdDSA') return generateKeyPairSync('ed25519')
  if (name === 'ES256') return generateKeyPairSync('ec', { namedCurve: 'P-256' })
  if (name === 'RS256') return generateKeyPairSync('rsa', { modulusLength: 2048 })
  if (name === 'ML-DSA-44') return generateKeyPairSync('ml-dsa-44')
  return name === 'ML-DSA-65' ? generateKeyPairSync('ml-dsa-65') : generateKeyPairSync('ml-dsa-87')
}

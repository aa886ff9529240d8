import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import {
  type AlgorithmName,
  type Cipher,
  KeyServiceError,
  type KeyStore,
  openBytes,
  readPublicJwk,
  sealBytes,
} from '@plat/keys'
import { flattenedVerify, importJWK } from 'jose'

/** Keys of one kind of place. */
export interface KeyPlace {
  readonly keys: KeyStore
  /** URIs of signing keys by algorithm; two of the first. */
  readonly signing: Readonly<Partial<Record<AlgorithmName, string>>>
  readonly another: string
  /** URIs of two AES-256 keys, or what the place has for them. */
  readonly encrypting: readonly [string, string]
  /** URI of a key that is not there. */
  readonly missing: string
}

/** Tests that every kind of key passes. `setUp` is called once per test. */
export function keyConformance(kind: string, setUp: (t: TestContext) => Promise<KeyPlace>): void {
  test(`${kind}: each key signs for its public half, which an independent library verifies`, async (t) => {
    const { keys, signing, another } = await setUp(t)
    const signatures = new Set<string>()
    for (const [algorithm, uri] of Object.entries(signing)) {
      const signer = await keys.openSigner(uri)
      assert.equal(signer.alg, algorithm)
      assert.equal(readPublicJwk({ ...signer.publicJwk, alg: algorithm })?.kid, signer.kid)
      assert.equal((await keys.openSigner(uri)).kid, signer.kid)
      const payload = 'e30'
      const header = Buffer.from(JSON.stringify({ alg: algorithm })).toString('base64url')
      const signature = await signer.sign(Buffer.from(`${header}.${payload}`), 'default/agent')
      const jws = { protected: header, payload, signature: Buffer.from(signature).toString('base64url') }
      if (!algorithm.startsWith('ML-DSA'))
        await flattenedVerify(jws, await importJWK({ ...signer.publicJwk, alg: algorithm }, algorithm))
      const { algorithm: by, key } = signer.publicKey
      assert.ok(by.verify(Buffer.from(`${header}.${payload}`), key, signature))
      signatures.add(jws.signature)
    }
    assert.equal(signatures.size, Object.keys(signing).length)
    const [first = ''] = Object.values(signing)
    assert.notEqual((await keys.openSigner(another)).kid, (await keys.openSigner(first)).kid)
  })

  test(`${kind}: many signatures at once are each valid for their bytes`, async (t) => {
    const { keys, signing } = await setUp(t)
    const [uri = ''] = Object.values(signing)
    const signer = await keys.openSigner(uri)
    const messages = Array.from({ length: 20 }, (_, at) => Buffer.from(`message ${at}`))
    const signatures = await Promise.all(messages.map((bytes) => signer.sign(bytes)))
    for (const [at, bytes] of messages.entries()) {
      assert.ok(signer.publicKey.algorithm.verify(bytes, signer.publicKey.key, signatures[at] ?? Buffer.alloc(0)))
    }
  })

  encryptionConformance(kind, setUp)

  test(`${kind}: a key of another type, or none, is refused in one line`, async (t) => {
    const { keys, signing, encrypting, missing } = await setUp(t)
    const [uri = ''] = Object.values(signing)
    const refusals: (() => Promise<object>)[] = [
      () => keys.openSigner(missing),
      () => keys.openCipher(missing),
      () => keys.openCipher(uri),
    ]
    // RSA keys of Key Vault both sign and wrap.
    if (!uri.startsWith('azurekv:')) refusals.push(() => keys.openSigner(encrypting[0]))
    for (const open of refusals) {
      await assert.rejects(open(), (error) => error instanceof Error && /^.{1,400}$/.test(error.message))
    }
  })
}

/** Tests that every kind of key for encryption passes. */
export function encryptionConformance(
  kind: string,
  setUp: (t: TestContext) => Promise<Pick<KeyPlace, 'keys' | 'encrypting'>>,
): void {
  test(`${kind}: what a key wrapped only that key unwraps, and no modified bytes`, async (t) => {
    const { keys, encrypting } = await setUp(t)
    const [cipher, other] = [await keys.openCipher(encrypting[0]), await keys.openCipher(encrypting[1])]
    assert.notEqual(cipher.kid, other.kid)
    assert.equal((await keys.openCipher(encrypting[0])).kid, cipher.kid)
    const plain = randomBytes(32)
    const wrapped = Buffer.from(await cipher.wrap(plain))
    assert.deepEqual(Buffer.from((await cipher.unwrap(wrapped)) ?? []), plain)
    // A process that starts later has no data key in memory.
    const later = await keys.openCipher(encrypting[0])
    assert.deepEqual(Buffer.from((await later.unwrap(wrapped)) ?? []), plain)
    assert.equal(await unwrapped(other, wrapped), null)
    for (const at of [0, 1, 2, 5, Math.floor(wrapped.length / 2), wrapped.length - 1]) {
      const modified = Buffer.from(wrapped)
      modified[at] = (modified[at] ?? 0) ^ 1
      assert.equal(await unwrapped(later, modified), null, `byte ${at}`)
    }
    for (const length of [0, 1, 3, wrapped.length - 1])
      assert.equal(await unwrapped(later, wrapped.subarray(0, length)), null)
  })

  test(`${kind}: sealed bytes open with the same key and context only`, async (t) => {
    const { keys, encrypting } = await setUp(t)
    const cipher = await keys.openCipher(encrypting[0])
    const sealed = await sealBytes(Buffer.from('secret'), {
      cipher,
      context: 'a',
      random: (count) => randomBytes(count),
    })
    assert.deepEqual(Buffer.from((await openBytes(sealed, cipher, 'a')) ?? []).toString(), 'secret')
    assert.equal(await openBytes(sealed, cipher, 'b'), null)
  })
}

/** Some services refuse what they have not wrapped instead of calling it invalid. */
async function unwrapped(cipher: Cipher, wrapped: Uint8Array): Promise<Uint8Array | null> {
  try {
    return await cipher.unwrap(wrapped)
  } catch (error) {
    assert.ok(error instanceof KeyServiceError && error.kind === 'refused', String(error))
    return null
  }
}

import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { ephemeralSigner, type LocalSigner, publicKeyOf } from '@plat/keys'
import { silentLog } from '@plat/process'
import { tempFolder } from '@plat/testkit/local'
import { joinSources, jwksSource, pemSource, staticSource } from './index.ts'

const entry = (signer: LocalSigner, more: object = {}) => ({
  ...signer.publicJwk,
  kid: signer.kid,
  use: 'sig',
  ...more,
})

/** A key document that a test can change and break, with a count of fetches. */
function setUp() {
  const clock = new TestClock()
  const origin: { keys: object[]; status: number; fetches: number } = { keys: [], status: 200, fetches: 0 }
  const dialer = {
    async fetchBytes() {
      origin.fetches++
      return { status: origin.status, bytes: Buffer.from(JSON.stringify({ keys: origin.keys })) }
    },
  }
  const source = jwksSource({ url: 'http://broker/jwks', refreshSeconds: 300, dialer, clock, log: silentLog })
  return { clock, origin, source }
}

test('OKP keys of a document are trusted, every other key is ignored', async () => {
  // Shows D1.jwks.okpKeys, D1.jwks.otherKeysIgnored.
  const { origin, source } = setUp()
  const key = ephemeralSigner()
  const ec = publicKeyOf(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey)
  const x25519 = generateKeyPairSync('x25519').publicKey.export({ format: 'jwk' })
  origin.keys = [{ ...ec?.jwk, kid: 'ec' }, { ...x25519, kid: 'x' }, { kty: 'oct', k: 'AA', kid: 'oct' }, entry(key)]
  await source.start()
  assert.equal(source.size, 1)
  assert.equal(source.find(key.kid)?.kid, key.kid)
  for (const kid of ['ec', 'x', 'oct']) assert.equal(source.find(kid), null)
  source.close()
})

test('the document is fetched periodically, and a key that it dropped is removed', async () => {
  // Shows D1.jwks.refreshSeconds.
  const { clock, origin, source } = setUp()
  const [old, fresh] = [ephemeralSigner(), ephemeralSigner()]
  origin.keys = [entry(old)]
  await source.start()
  const { revision } = source
  await clock.advance(299_000)
  assert.equal(origin.fetches, 1)
  origin.keys = [entry(fresh)]
  await clock.advance(11_000)
  assert.equal(origin.fetches, 2)
  assert.equal(source.find(old.kid), null)
  assert.ok(source.find(fresh.kid))
  assert.ok(source.revision > revision)
  source.close()
  await clock.advance(3_600_000)
  assert.equal(origin.fetches, 2)
})

test('an unknown kid causes a fetch, at most every 10 s, and all waiting callers share it', async () => {
  // Shows D1.jwks.refreshOnUnknownKid, D1.limit.unknownKidRefresh.
  const { clock, origin, source } = setUp()
  await source.start()
  const key = ephemeralSigner()
  origin.keys = [entry(key)]
  assert.equal(source.refresh(), null)
  await clock.advance(9_999)
  assert.equal(source.refresh(), null)
  await clock.advance(1)
  const requested = source.refresh()
  assert.ok(requested)
  assert.equal(source.refresh(), requested)
  await requested
  assert.ok(source.find(key.kid))
  assert.equal(origin.fetches, 2)
  source.close()
})

test('a failed refresh keeps the keys and is retried after 10 s', async () => {
  const { clock, origin, source } = setUp()
  const key = ephemeralSigner()
  origin.keys = [entry(key)]
  await source.start()
  origin.status = 500
  await clock.advance(310_000)
  assert.ok(source.find(key.kid))
  const { fetches } = origin
  await clock.advance(20_000)
  assert.equal(origin.fetches, fetches + 2)
  source.close()
})

test('a broker that starts later is found', async () => {
  const { clock, origin, source } = setUp()
  origin.status = 503
  await source.start()
  assert.equal(source.size, 0)
  const key = ephemeralSigner()
  origin.keys = [entry(key)]
  origin.status = 200
  await clock.advance(10_000)
  assert.ok(source.find(key.kid))
  source.close()
})

test('PEM files are reloaded when they change, and a malformed one keeps the old key', async () => {
  const dir = tempFolder()
  const clock = new TestClock()
  const file = path.join(dir, 'pub.pem')
  const warnings: string[] = []
  const pem = () => generateKeyPairSync('ed25519').publicKey.export({ format: 'pem', type: 'spki' }).toString()
  await assert.rejects(pemSource([file], { clock, log: silentLog }).start(), /pub\.pem: missing/)
  await fs.writeFile(file, pem())
  const source = pemSource([file], { clock, log: { ...silentLog, warn: (_, message) => warnings.push(message) } })
  await source.start()
  const first = source.find(null)
  assert.ok(first)
  const untilRead = async (done: () => boolean) => {
    await clock.advance(10_000)
    while (!done()) await new Promise((resolve) => setTimeout(resolve, 5))
  }
  await fs.writeFile(file, 'nothing')
  await untilRead(() => warnings.length > 0)
  assert.equal(source.find(null)?.kid, first.kid)
  await fs.writeFile(file, pem() + pem())
  await untilRead(() => source.size === 2)
  assert.equal(source.size, 2)
  assert.equal(source.find(first.kid), null)
  source.close()
})

test('several sources are combined: two keys in two of them leave a token without kid unknown', () => {
  const [a, b] = [ephemeralSigner().publicKey, ephemeralSigner().publicKey]
  const joined = joinSources([staticSource([a]), staticSource([b])])
  assert.equal(joined.size, 2)
  assert.equal(joined.find(null), null)
  assert.equal(joined.find(b.kid)?.kid, b.kid)
  assert.equal(joined.refresh(), null)
})

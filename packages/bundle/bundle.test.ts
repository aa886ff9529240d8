import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { type AlgorithmName, ephemeralSigner, type LocalSigner } from '@plat/keys'
import { signJws } from '@plat/tokens'
import fc from 'fast-check'
import { compactVerify, importJWK } from 'jose'
import { type Bundle, isSigned, readBundle, type SignaturePolicy, writeBundle } from './index.ts'
import { digestOf } from './statement.ts'
import { type Entry, isEntryName, readTar, writeTar } from './tar.ts'

const MAX = 1024 * 1024
const statement = { issuer: 'ops', revision: 7, issuedAt: 1000, notBefore: null, expiresAt: null }
const files = [
  { name: 'policies.json', bytes: Buffer.from('{"version":1}') },
  { name: 'a/b.json', bytes: Buffer.from('') },
]
const signer = ephemeralSigner()

async function read(bytes: Uint8Array, maxBytes = MAX): Promise<Bundle> {
  const bundle = await readBundle(bytes, maxBytes)
  if ('kind' in bundle) assert.fail(`${bundle.reason}: ${bundle.message}`)
  return bundle
}

async function reason(bytes: Uint8Array, maxBytes = MAX): Promise<string> {
  const bundle = await readBundle(bytes, maxBytes)
  return 'kind' in bundle ? bundle.reason : 'none'
}

function textOf(entries: readonly Entry[]): string[] {
  return entries.map(({ name, bytes }) => `${name}=${Buffer.from(bytes)}`)
}

function keysOf(...signers: readonly LocalSigner[]) {
  return { find: (kid: string) => signers.find((one) => one.kid === kid)?.publicKey ?? null }
}

/** Creates an archive of these entries whose signatures cover `signed`. */
function archive(entries: readonly Entry[], signed: readonly Entry[] = entries): Buffer {
  const claims = { iss: 'ops', revision: 7, iat: 1000, digest: digestOf(signed) }
  const jws = signJws(signer, { typ: 'plat-config-bundle+jws' }, claims)
  return writeTar([{ name: 'bundle.jws', bytes: Buffer.from(jws) }, ...entries])
}

test('a bundle that was written can be read', async () => {
  const times = { notBefore: 900, expiresAt: 2000 }
  const bundle = await read(writeBundle({ statement: { ...statement, ...times }, files }, [signer]))
  const { digest, ...stated } = bundle.statement
  assert.deepEqual(stated, { ...statement, ...times })
  assert.equal(digest, digestOf(files))
  assert.deepEqual(textOf(bundle.files), textOf(files))
})

test('equal content gives equal bundle ids, with any signers', async () => {
  const one = await read(writeBundle({ statement, files }, [signer]))
  const other = await read(writeBundle({ statement, files }, [ephemeralSigner('ES256')]))
  const next = await read(writeBundle({ statement: { ...statement, revision: 8 }, files }, [signer]))
  assert.equal(one.id, other.id)
  assert.notEqual(one.id, next.id)
})

const kinds: readonly AlgorithmName[] = ['EdDSA', 'ES256', 'RS256', 'ML-DSA-44', 'ML-DSA-65', 'ML-DSA-87']

test('every kind of key signs, and an independent library verifies the classical ones', async () => {
  for (const kind of kinds) {
    const key = ephemeralSigner(kind)
    const bundle = await read(writeBundle({ statement, files }, [key]))
    const isPq = kind.startsWith('ML-DSA')
    assert.equal(isSigned(bundle.signatures, keysOf(key), isPq ? 'pq' : 'classical'), true, kind)
    assert.equal(isSigned(bundle.signatures, keysOf(key), isPq ? 'classical' : 'pq'), false, kind)
    assert.equal(isSigned(bundle.signatures, keysOf(key), 'hybrid'), false, kind)
    assert.equal(isSigned(bundle.signatures, keysOf(ephemeralSigner(kind)), isPq ? 'pq' : 'classical'), false, kind)
    if (isPq) continue
    const [text = ''] = textOf(readAll(writeBundle({ statement, files }, [key])))
    await compactVerify(text.replace('bundle.jws=', '').trim(), await importJWK({ ...key.publicJwk }, kind))
  }
})

function readAll(bytes: Uint8Array): readonly Entry[] {
  const entries = readTar(gunzipSync(bytes), 300)
  return typeof entries === 'string' ? assert.fail(entries) : entries
}

test('a policy requires a signature of each of its kinds', async () => {
  const pq = ephemeralSigner('ML-DSA-65')
  const stranger = ephemeralSigner('ML-DSA-65')
  const verdicts = async (signers: readonly LocalSigner[]) => {
    const { signatures } = await read(writeBundle({ statement, files }, signers))
    const policies: readonly SignaturePolicy[] = ['classical', 'hybrid', 'pq']
    return policies.filter((policy) => isSigned(signatures, keysOf(signer, pq), policy))
  }
  assert.deepEqual(await verdicts([signer, pq]), ['classical', 'hybrid', 'pq'])
  assert.deepEqual(await verdicts([signer]), ['classical'])
  assert.deepEqual(await verdicts([pq]), ['pq'])
  assert.deepEqual(await verdicts([signer, stranger]), ['classical'])
  assert.deepEqual(await verdicts([]).catch(() => 'malformed'), 'malformed')
})

test('files that differ from the signed ones are refused', async () => {
  const [first, second] = files
  assert.ok(first !== undefined && second !== undefined)
  const other = { name: first.name, bytes: Buffer.from('{"version":2}') }
  assert.equal(await reason(gzipSync(archive(files))), 'none')
  for (const entries of [
    [other, second],
    [first],
    [...files, { ...first, name: 'more.json' }],
    [{ ...first, name: 'x' }, second],
  ]) {
    assert.equal(await reason(gzipSync(archive(entries, files))), 'digest')
  }
})

test('files that are unpacked and hashed in several pieces equal the signed ones', async () => {
  const bytes = Buffer.alloc(3 * MAX + 12_345, 'plat')
  for (const size of [MAX - 1, MAX, MAX + 1, bytes.length]) {
    const large = [{ name: 'large', bytes: bytes.subarray(0, size) }, ...files]
    const whole = writeBundle({ statement, files: large }, [signer])
    assert.deepEqual((await read(whole, 4 * MAX)).files, large)
    const changed = archive(
      [{ name: 'large', bytes: Buffer.concat([bytes.subarray(0, size - 1), Buffer.from('x')]) }, ...files],
      large,
    )
    assert.equal(await reason(gzipSync(changed), 4 * MAX), 'digest')
    assert.equal(await reason(whole.subarray(0, whole.length - 9), 4 * MAX), 'incomplete')
  }
})

test('a bundle above the size limit is not unpacked', async () => {
  const bomb = gzipSync(archive([{ name: 'zeros', bytes: Buffer.alloc(5 * MAX) }]))
  assert.ok(bomb.length < 50_000)
  assert.equal(await reason(bomb), 'size')
  assert.equal(await reason(gzipSync(archive(files)), 100), 'size')
})

test('a truncated bundle is incomplete, and other bytes are malformed', async () => {
  const whole = writeBundle({ statement, files }, [signer])
  assert.equal(await reason(whole.subarray(0, whole.length - 9)), 'incomplete')
  assert.equal(await reason(Buffer.from('hello')), 'malformed')
  assert.equal(await reason(gzipSync(Buffer.alloc(1024))), 'malformed')
  assert.equal(await reason(gzipSync(archive(files).subarray(0, 2048))), 'malformed')
})

test('signatures are one compact JWS per line, of one statement and of the bundle type', async () => {
  const claims = { iss: 'ops', revision: 7, iat: 1000, digest: digestOf(files) }
  const typ = 'plat-config-bundle+jws'
  const signed = (...lines: readonly string[]) =>
    reason(gzipSync(writeTar([{ name: 'bundle.jws', bytes: Buffer.from(lines.join('\n')) }, ...files])))
  const good = signJws(signer, { typ }, claims)
  assert.equal(await signed(good), 'none')
  assert.equal(await signed(good, signJws(ephemeralSigner(), { typ }, claims), ''), 'none')
  assert.equal(await signed(good, signJws(signer, { typ }, { ...claims, revision: 8 })), 'malformed')
  assert.equal(await signed(signJws(signer, { typ: 'JWT' }, claims)), 'malformed')
  assert.equal(await signed(...Array.from({ length: 9 }, () => good)), 'malformed')
  assert.equal(await signed(''), 'malformed')
  for (const bad of [
    { revision: 0 },
    { revision: 1.5 },
    { digest: 'x' },
    { iat: 'now' },
    { iss: undefined },
    { exp: -1 },
  ]) {
    assert.equal(await signed(signJws(signer, { typ }, { ...claims, ...bad })), 'malformed', JSON.stringify(bad))
  }
})

test('ambiguous, hidden and escaping names are refused', () => {
  for (const name of ['a', 'a.json', 'a/b/c/d.json', 'A-b_c.1']) assert.equal(isEntryName(name), true, name)
  const bad = [
    '',
    '/a',
    '../a',
    'a/../b',
    './a',
    'a//b',
    'a/',
    '.a',
    'a/.b',
    'a\\b',
    'a b',
    'ä',
    'a/b/c/d/e',
    'a\0b',
    'x'.repeat(101),
  ]
  for (const name of bad) assert.equal(isEntryName(name), false, JSON.stringify(name))
  assert.throws(() => writeTar([{ name: '../a', bytes: Buffer.alloc(0) }]), /cannot be the name/)
})

/** Returns the archive with a modified first header and a correct checksum. */
function withHeader(change: (header: Buffer) => void): string {
  const tar = writeTar([{ name: 'a', bytes: Buffer.from('x') }])
  const header = tar.subarray(0, 512)
  change(header)
  header.fill(' ', 148, 156)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  const read = readTar(tar, 10)
  return typeof read === 'string' ? read : 'taken'
}

test('links, folders, devices and extended headers are refused, and so is a split name', () => {
  assert.equal(
    withHeader(() => {}),
    'taken',
  )
  for (const type of ['1', '2', '3', '4', '5', '6', '7', 'x', 'g', 'L', 'K', 'S']) {
    assert.equal(
      withHeader((header) => header.write(type, 156, 'latin1')),
      'a is not a regular file',
      type,
    )
  }
  assert.equal(
    withHeader((header) => header.write('/etc/passwd', 157, 'latin1')),
    'a is not a regular file',
  )
  assert.match(
    withHeader((header) => header.write('..', 345, 'latin1')),
    /the archive names "a"/,
  )
  assert.match(
    withHeader((header) => header.write('../a\0', 0, 'latin1')),
    /the archive names "\.\.\/a"/,
  )
  assert.match(
    withHeader((header) => header.fill(0x80, 124, 125)),
    /a has no size/,
  )
  assert.match(
    withHeader((header) => header.write('77777777777\0', 124, 'latin1')),
    /continues past the end/,
  )
  assert.match(
    withHeader((header) => header.write('ustaR', 257, 'latin1')),
    /not a tar archive/,
  )
})

test('an archive has unique names, a limited number of files, an end, and nothing after it', () => {
  const one = { name: 'a', bytes: Buffer.from('x') }
  assert.equal(readTar(writeTar([one, one]), 10), 'the archive has a twice')
  assert.equal(readTar(writeTar([one, { ...one, name: 'b' }]), 1), 'the archive has more than 1 files')
  const tar = writeTar([one])
  assert.equal(readTar(tar.subarray(0, 1024), 10), 'the archive has no end')
  assert.equal(readTar(Buffer.concat([tar, Buffer.from('x')]), 10), 'the archive continues past its end')
  assert.equal(readTar(Buffer.concat([tar, Buffer.alloc(100_000)]), 10), 'the archive continues past its end')
  const broken = Buffer.from(tar)
  broken.write('b', 0)
  assert.equal(readTar(broken, 10), 'the archive has a header whose checksum is wrong')
})

test('any files read back as written', () => {
  const name = fc.stringMatching(/^[a-z][a-z0-9._-]{0,20}(\/[a-z0-9][a-z0-9.]{0,9}){0,3}$/)
  const entry = fc.record({ name, bytes: fc.uint8Array({ maxLength: 1500 }).map((bytes) => Buffer.from(bytes)) })
  const entries = fc.uniqueArray(entry, { selector: (one) => one.name, maxLength: 8 })
  fc.assert(
    fc.property(entries, (written) => {
      const read = readTar(writeTar(written), 8)
      assert.ok(typeof read !== 'string')
      assert.deepEqual(textOf(read), textOf(written))
    }),
    { numRuns: 60 },
  )
})

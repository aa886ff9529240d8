import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { openCipher } from './index.ts'

async function keyFile(t: TestContext, text: string): Promise<string> {
  const dir = await mkdtemp(path.join(tmpdir(), 'plat-'))
  t.after(() => rm(dir, { recursive: true }))
  await writeFile(path.join(dir, 'vault.key'), text)
  return path.join(dir, 'vault.key')
}

test('the vector of RFC 3394, section 4.6, matches, in base64 and in hex, by path and by URI', async (t) => {
  const kek = Buffer.from('000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F', 'hex')
  const plain = Buffer.from('00112233445566778899AABBCCDDEEFF000102030405060708090A0B0C0D0E0F', 'hex')
  const wrapped = '28c9f404c4b810f4cbccb35cfb87f8263f5786e2d80ed326cbc7f0e71a99f43bfb988b9b7a02dd21'
  const hex = await openCipher(await keyFile(t, `${kek.toString('hex')}\n`))
  const base64 = await openCipher(`file://${await keyFile(t, kek.toString('base64'))}`)
  for (const cipher of [hex, base64]) {
    assert.equal(Buffer.from(await cipher.wrap(plain)).toString('hex'), wrapped)
    assert.deepEqual(await cipher.unwrap(Buffer.from(wrapped, 'hex')), plain)
  }
  assert.equal(hex.kid, base64.kid)
})

test('another key or any flipped bit fails to unwrap', async (t) => {
  const mine = await openCipher(await keyFile(t, randomBytes(32).toString('base64')))
  const other = await openCipher(await keyFile(t, randomBytes(32).toString('base64')))
  assert.notEqual(mine.kid, other.kid)
  const wrapped = Buffer.from(await mine.wrap(randomBytes(32)))
  assert.equal(await other.unwrap(wrapped), null)
  for (let at = 0; at < wrapped.length; at++) {
    const changed = Buffer.from(wrapped)
    changed[at] = (changed[at] ?? 0) ^ 1
    assert.equal(await mine.unwrap(changed), null)
  }
  for (const odd of [Buffer.alloc(0), wrapped.subarray(1), Buffer.concat([wrapped, wrapped])]) {
    assert.equal(await mine.unwrap(odd), null)
  }
})

test('a file without a key of 32 bytes is refused by name, and never quoted', async (t) => {
  const texts = [
    '',
    'secret',
    randomBytes(16).toString('base64'),
    randomBytes(33).toString('hex'),
    `${'A'.repeat(42)}B=`,
  ]
  for (const text of texts) {
    const file = await keyFile(t, text)
    await assert.rejects(openCipher(file), (error) => {
      assert.ok(error instanceof Error)
      assert.equal(error.message, `${file}: holds no AES-256 key; write 32 bytes in base64 or hex`)
      return true
    })
  }
  await assert.rejects(openCipher('/nowhere/vault.key'), /\/nowhere\/vault.key: cannot be read \(ENOENT\)/)
  await assert.rejects(openCipher('kms://aws/eu-west-1/alias/x'), /only keys in files can be used here/)
})

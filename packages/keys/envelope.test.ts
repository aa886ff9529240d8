import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { openCipher } from './cipher.ts'
import { openBytes, sealBytes } from './envelope.ts'

async function cipherIn(t: TestContext) {
  const dir = await mkdtemp(path.join(os.tmpdir(), 'plat-'))
  t.after(() => rm(dir, { recursive: true }))
  await writeFile(path.join(dir, 'key'), randomBytes(32).toString('hex'))
  return openCipher(path.join(dir, 'key'))
}

test('sealed bytes open only in their context, under their key, and unmodified', async (t) => {
  const [cipher, other] = [await cipherIn(t), await cipherIn(t)]
  const plain = Buffer.from('a secret')
  const sealed = await sealBytes(plain, { cipher, context: 'here', random: randomBytes })
  assert.deepEqual(await openBytes(sealed, cipher, 'here'), plain)
  assert.equal(await openBytes(sealed, cipher, 'there'), null)
  assert.equal(await openBytes(sealed, other, 'here'), null)
  for (const member of ['key', 'nonce', 'data'] as const) {
    for (const wrong of ['', 'AA', '!', `${sealed[member].startsWith('A') ? 'B' : 'A'}${sealed[member].slice(1)}`]) {
      assert.equal(await openBytes({ ...sealed, [member]: wrong }, cipher, 'here'), null, `${member} ${wrong}`)
    }
  }
  const again = await sealBytes(plain, { cipher, context: 'here', random: randomBytes })
  assert.notEqual(again.data, sealed.data)
})

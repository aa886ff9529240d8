import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { readBounded, readText, readUpTo } from './bounded.ts'

test('no more of a file is read than requested', async (t) => {
  const dir = await mkdtemp(path.join(os.tmpdir(), 'plat-'))
  t.after(() => rm(dir, { recursive: true }))
  const file = path.join(dir, 'file')
  const whole = 'x'.repeat(200_000)
  await writeFile(file, whole)
  for (const most of [1, 1000, 200_000, 300_000]) {
    assert.equal((await readUpTo(file, most)).toString(), whole.slice(0, most))
  }
  assert.equal(await readText(file, 200_000), whole)
  assert.equal(await readText(file, 199_999), null)
  assert.equal(await readText(dir, 1), null)
  await writeFile(file, '')
  assert.equal((await readUpTo(file, 10)).length, 0)
  await assert.rejects(readUpTo(path.join(dir, 'none'), 10), /ENOENT/)
})

test('a file that reports size 0 and never ends is read up to the limit only', async () => {
  await assert.rejects(readBounded('/dev/zero', 1000), /^Error: \/dev\/zero is larger than 1000 bytes$/)
  assert.equal(await readText('/dev/zero', 1000), null)
})

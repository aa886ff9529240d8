import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { CommandError } from '../shared/output.ts'
import { keysGenerate } from './generate.ts'

test('an existing key stays, and the command says so in one line', async () => {
  const dir = tempFolder()
  const quiet = { out() {}, err() {} }
  assert.equal(await keysGenerate({ dir, format: 'table' }, quiet), 0)
  const key = await readFile(join(dir, 'key.pem'), 'utf8')
  await assert.rejects(
    keysGenerate({ dir, format: 'table' }, quiet),
    (error) => error instanceof CommandError && /key\.pem: exists already/.test(error.message),
  )
  assert.equal(await readFile(join(dir, 'key.pem'), 'utf8'), key)
})

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { readSecret } from './secret.ts'

const folder = mkdtempSync(path.join(os.tmpdir(), 'plat-'))
after(() => rmSync(folder, { recursive: true }))

function file(content: string): string {
  const at = path.join(folder, 'secret')
  writeFileSync(at, content)
  return at
}

test('a secret is read from the variable or from the file that the _FILE variable names', () => {
  assert.equal(readSecret({ A: ' s3cret ' }, 'A'), ' s3cret ')
  assert.equal(readSecret({ A_FILE: file('s3cret') }, 'A'), 's3cret')
  assert.equal(readSecret({}, 'A'), null)
})

test('exactly one trailing newline of a file is removed', () => {
  assert.equal(readSecret({ A_FILE: file('s\n') }, 'A'), 's')
  assert.equal(readSecret({ A_FILE: file('s\r\n') }, 'A'), 's')
  assert.equal(readSecret({ A_FILE: file('s\n\n') }, 'A'), 's\n')
})

test('both variables, an empty one and an unreadable file are refused by name and without the value', () => {
  const refuse = (env: NodeJS.ProcessEnv, message: RegExp) => {
    assert.throws(
      () => readSecret(env, 'A'),
      (error: Error) => message.test(error.message) && !error.message.includes('s3cret'),
    )
  }
  refuse({ A: 's3cret', A_FILE: file('s3cret') }, /^A and A_FILE are both set/)
  refuse({ A: '' }, /^A is empty/)
  refuse({ A_FILE: file('\n') }, /^the file of A_FILE is empty/)
  refuse({ A_FILE: path.join(folder, 'none') }, /^A_FILE names a file that cannot be read: .*none \(ENOENT\)$/)
  refuse({ A_FILE: folder }, /^A_FILE names a file that cannot be read: .*\(EISDIR\)$/)
})

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { tempFolder } from '../local.ts'
import { installOnce } from './install-once.ts'

test('packages that several tests need at the same time are installed once', async () => {
  const dir = join(tempFolder(), 'packages')
  let installs = 0
  const install = async () => {
    installs++
    mkdirSync(dir)
    await new Promise(setImmediate)
  }
  assert.deepEqual(await Promise.all([1, 2, 3].map(() => installOnce(dir, install))), [null, null, null])
  assert.equal(installs, 1)
})

test('the last line of the installer is the reason, and the next test tries again', async () => {
  const dir = join(tempFolder(), 'packages')
  const script = 'echo first >&2; echo no such version >&2; exit 1'
  assert.equal(await installOnce(dir, () => promisify(execFile)('sh', ['-c', script])), 'no such version')
  assert.equal(existsSync(join(dir, 'complete')), false)
  assert.equal(await installOnce(dir, async () => mkdirSync(dir)), null)
})

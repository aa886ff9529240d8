import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { tempFolder } from '../local.ts'
import { installOnce } from './install-once.ts'

const run = promisify(execFile)

test('an installation that takes too long is reported as such, and tried again the next time', async () => {
  const dir = path.join(tempFolder(), 'packages')
  const late = () => run(process.execPath, ['-e', 'setTimeout(() => {}, 60_000)'], { timeout: 50 })
  assert.equal(await installOnce(dir, late), 'not installed in time')
  assert.equal(existsSync(path.join(dir, 'complete')), false)
  const broken = () => run(process.execPath, ['-e', 'console.error("a\\nno such package"); process.exit(1)'])
  assert.equal(await installOnce(dir, broken), 'no such package')
})

import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { linkSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { copyRuntime } from './runtime.ts'

const COPY = join(import.meta.dirname, '../../bin/plat-stdio-copy.mjs')

test('a copied runtime runs by its own loader and libraries, and is copied again over a read-only one', () => {
  const bundle = join(tempFolder(), 'bridge.mjs')
  writeFileSync(bundle, "console.log('first', process.versions.node)\n")
  const to = join(tempFolder(), 'runtime')
  mkdirSync(to)
  copyRuntime(to, bundle)
  // Values that would break a program which is started in the usual way.
  const env = { LD_LIBRARY_PATH: '/nowhere' }
  const run = () =>
    execFileSync(join(to, 'loader'), ['--library-path', join(to, 'lib'), join(to, 'node'), join(to, 'bridge.mjs')], {
      env,
    })
  assert.equal(String(run()), `first ${process.versions.node}\n`)
  assert.equal(statSync(join(to, 'bridge.mjs')).mode & 0o777, 0o555)
  linkSync(join(to, 'bridge.mjs'), join(to, 'first'))
  writeFileSync(bundle, "console.log('second')\n")
  copyRuntime(to, bundle)
  assert.equal(String(run()), 'second\n')
  assert.match(readFileSync(join(to, 'first'), 'utf8'), /first/, 'the file is replaced, not written')
  assert.equal(readFileSync(join(to, 'bridge.mjs'), 'utf8'), readFileSync(bundle, 'utf8'))
})

test('what cannot be copied is said in one line', () => {
  assert.throws(
    () => copyRuntime(tempFolder(), '/nowhere/bridge.mjs'),
    /bridge\.mjs is missing: run node tools\/package\/stdio\.ts$/,
  )
  const { status, stderr } = spawnSync(process.execPath, [COPY], { encoding: 'utf8' })
  assert.equal(status, 1)
  assert.match(stderr, /-to: Required value/)
})

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cpSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { joinServices } from './services.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')

/** Runs a program and returns its output and the modules of plat that it loaded, one per line. */
function run(hook: string | null): { output: string; sources: number } {
  const list = `data:text/javascript,${encodeURIComponent(`import module from 'node:module'
    let sources = 0
    module.registerHooks({ load(url, context, next) { sources += url.endsWith('.ts') ? 1 : 0; return next(url, context) } })
    process.on('exit', () => console.log(sources))`)}`
  const args = [...(hook === null ? [] : ['--import', hook]), '--import', list]
  const program = path.join(ROOT, 'services/gateway/bin/plat-gateway.mjs')
  const { NODE_OPTIONS: _, ...env } = process.env
  const lines = execFileSync(process.execPath, [...args, program, '-version'], { env, encoding: 'utf8' })
    .trim()
    .split('\n')
  return { output: lines.slice(0, -1).join('\n'), sources: Number(lines.at(-1)) }
}

test('a program runs from its bundle, and prints what it prints from its sources', async () => {
  const hook = await joinServices(ROOT, true)
  assert.ok(hook !== null)
  const bundled = run(hook)
  const installed = run(null)
  assert.equal(bundled.output, installed.output)
  assert.equal(bundled.sources, 0)
  assert.ok(installed.sources > 100)
})

test('without a bundle programs run from their sources, and one that cannot be built leaves nothing', async () => {
  const root = tempFolder()
  cpSync(path.join(ROOT, 'package-lock.json'), path.join(root, 'package-lock.json'))
  assert.equal(await joinServices(root, false), null)
  assert.equal(await joinServices(root, true), null)
  assert.deepEqual(readdirSync(path.join(root, '.cache/services')), [])
})

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { copyFileSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { joinLibraries, LIBRARY_NAMES } from './libraries.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')

const LIST_EXPORTS = `
import { createRequire } from 'node:module'
for (const name of ${JSON.stringify(LIBRARY_NAMES)}) {
  // Node adds the name module.exports to what a CommonJS module exports.
  const library = Object.entries(await import(name)).filter(([key]) => key !== 'module.exports')
  console.log(name, library.map(([key, value]) => [key, typeof value, value?.name]).sort().join(' '))
}
const { Type } = await import('typebox')
const { Check } = await import('typebox/value')
console.log(Check(Type.String({ maxLength: 1 }), 'a'), Check(Type.String({ maxLength: 1 }), 'ab'))
console.log((await import('yaml')).parse('a: 1').a, typeof createRequire(import.meta.url)('fastify'))
console.log(import.meta.resolve('typebox').includes('/node_modules/'))
`

/** The exports of the libraries as a process sees them, and whether it loads those that are installed. */
function exportsOf(...flags: readonly string[]): { readonly exported: string; readonly isInstalled: boolean } {
  const { NODE_OPTIONS: _, ...env } = process.env
  const args = [...flags, '--input-type=module', '-e', LIST_EXPORTS]
  const lines = execFileSync(process.execPath, args, { cwd: ROOT, env, encoding: 'utf8' }).trim().split('\n')
  return { exported: lines.slice(0, -1).join('\n'), isInstalled: lines.at(-1) === 'true' }
}

test('joined libraries export under each name what the installed ones do', async () => {
  const hook = await joinLibraries(ROOT)
  assert.ok(hook !== null)
  const installed = exportsOf()
  const joined = exportsOf(`--import=${hook}`)
  assert.deepEqual([installed.isInstalled, joined.isInstalled], [true, false])
  assert.equal(joined.exported, installed.exported)
  assert.match(joined.exported, /\ntrue false\n1 function$/)
})

test('where libraries cannot be joined they are loaded as installed', async () => {
  const root = tempFolder()
  copyFileSync(path.join(ROOT, 'package-lock.json'), path.join(root, 'package-lock.json'))
  assert.equal(await joinLibraries(root), null)
  assert.deepEqual(readdirSync(path.join(root, '.cache/libraries')), [])
})

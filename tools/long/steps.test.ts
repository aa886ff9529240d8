import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { STEPS } from './steps.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')

test('the file of every step exists and has a test that its pattern selects', () => {
  for (const { name, runner, file, pattern = '' } of STEPS) {
    assert.ok(existsSync(path.join(ROOT, runner)), `${name}: ${runner}`)
    if (file === undefined) continue
    const names = [...readFileSync(path.join(ROOT, file), 'utf8').matchAll(/^test\(\s*['`](.+?)['`],/gm)].map(
      ([, title]) => title,
    )
    assert.ok(
      names.some((title) => title?.includes(pattern)),
      `${name}: no test of ${file} has "${pattern}" in its name`,
    )
  }
})

test('no two steps have the same name', () => {
  const names = STEPS.map(({ name }) => name)
  assert.deepEqual(names, [...new Set(names)])
})

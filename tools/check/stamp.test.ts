import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { SUITES, staleSuites, stampSuite } from './stamp.ts'

/** A tree with two suites, in a folder that is removed after. */
function withTree(use: (root: string, stale: () => string[]) => void): void {
  const root = mkdtempSync(path.join(os.tmpdir(), 'plat-'))
  for (const file of ['test/fuzz/run.ts', 'bench/run.ts', 'packages/core/a.ts', 'packages/core/notes.md']) {
    mkdirSync(path.dirname(path.join(root, file)), { recursive: true })
    writeFileSync(path.join(root, file), '1')
  }
  try {
    use(root, () => staleSuites(root).map(({ name }) => name))
  } finally {
    rmSync(root, { recursive: true })
  }
}

test('a fresh clone says nothing', () => {
  withTree((_root, stale) => assert.deepEqual(stale(), []))
})

test('a suite that passed is not named until its code changes', () => {
  withTree((root, stale) => {
    stampSuite(root, 'fuzz')
    stampSuite(root, 'bench')
    assert.deepEqual(stale(), [])
    writeFileSync(path.join(root, 'packages/core/notes.md'), '2')
    writeFileSync(path.join(root, 'bench/run.ts'), '2')
    assert.deepEqual(stale(), ['bench'])
    writeFileSync(path.join(root, 'packages/core/a.ts'), '2')
    assert.deepEqual(stale(), ['fuzz', 'bench'])
    stampSuite(root, 'fuzz')
    assert.deepEqual(stale(), ['bench'])
  })
})

test('a built suite that never ran is named once another did, one that is not built is not', () => {
  withTree((root, stale) => {
    stampSuite(root, 'fuzz')
    assert.deepEqual(stale(), ['bench'])
    assert.throws(() => stampSuite(root, 'nothing'), /no such suite/)
  })
})

test('every suite that has a runner names existing code', () => {
  const root = path.resolve(import.meta.dirname, '../..')
  for (const suite of SUITES.filter(({ runner }) => existsSync(path.join(root, runner)))) {
    for (const folder of suite.code) assert.ok(existsSync(path.join(root, folder)), `${suite.name} ${folder}`)
  }
})

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { appendFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { tempFolder } from '@plat/testkit/local'
import { LastRuns } from './results.ts'

const TESTS = `import { test } from 'node:test'
test('passes', () => {})
test('is skipped', { skip: true }, () => {})
test('fails', () => { throw new Error('x') })
for (const n of [1, 2]) test('fails the second time', () => { if (n === 2) throw new Error('x') })
test('has parts', async (t) => {
  await t.test('one', () => {})
})
`

/** Runs the tests above as the suite `system` of a separate folder. */
function runSuite(root: string, file: string): void {
  const execute = pathToFileURL(path.join(import.meta.dirname, 'execute.ts')).href
  const script = `import { executeTests } from ${JSON.stringify(execute)}
    const options = { files: [${JSON.stringify(path.join(root, file))}], concurrency: 1, timeoutMs: 60000 }
    const executed = await executeTests(options)
    executed.results.write(${JSON.stringify(root)}, 'system')`
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  writeFileSync(path.join(root, 'run.mjs'), script)
  const args = [path.join(root, 'run.mjs')]
  const { status, stderr } = spawnSync(process.execPath, args, { env, encoding: 'utf8', cwd: import.meta.dirname })
  assert.equal(status, 0, stderr)
}

test('a test counts as passed only if it ran and passed each time, and its file has not changed since', () => {
  const root = tempFolder()
  const file = 'a.system.test.ts'
  writeFileSync(path.join(root, file), TESTS)
  assert.deepEqual(new LastRuns(root).missing, ['test', 'system', 'cluster'])
  runSuite(root, file)
  const runs = new LastRuns(root)
  assert.deepEqual(runs.missing, ['test', 'cluster'])
  const passed = [2, 3, 4, 5, 6, 7, 8].filter((line) => runs.hasPassed(file, line))
  assert.deepEqual(passed, [2, 6, 7])
  appendFileSync(path.join(root, file), '\n')
  assert.equal(runs.hasPassed(file, 2), false)
  assert.equal(runs.hasPassed('b.test.ts', 2), false)
})

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'

const dir = mkdtempSync(path.join(os.tmpdir(), 'plat-'))
after(() => rmSync(dir, { recursive: true }))

function write(name: string, body: string): string {
  const file = path.join(dir, name)
  mkdirSync(path.dirname(file), { recursive: true })
  writeFileSync(file, `import { test } from 'node:test'\n${body}\n`)
  return file
}

function runTests(...args: string[]): { status: number | null; lines: string[]; errors: string } {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const done = spawnSync(process.execPath, [path.join(import.meta.dirname, 'run.ts'), ...args], {
    env,
    encoding: 'utf8',
  })
  return { status: done.status, lines: done.stdout.trim().split('\n'), errors: done.stderr }
}

const pid = "console.log('pid ' + process.pid)"
write('good/a.test.ts', `test('a', () => {${pid}})`)
write('good/b.test.ts', `test('b', () => {${pid}})`)
write('good/c.live.test.ts', `test('c', () => {${pid}})`)
write('good/test/cluster/d.test.ts', "test('d', () => { throw new Error('not here') })")
write('good/e.system.test.ts', "test('e', () => { throw new Error('not here') })")
write('bad/one.test.ts', "test('fails', () => { throw new Error('x') })\ntest('skipped', { skip: true }, () => {})")
write('bad/two.live.test.ts', "test('fails too', () => { throw new Error('x') })")
write('broken/one.test.ts', "import './missing.ts'")
write('broken/two.test.ts', "test('still runs', () => {})")

test('one run counts both groups, and files without sockets share a process', () => {
  const { status, lines } = runTests(path.join(dir, 'good'))
  assert.equal(status, 0, lines.join('\n'))
  assert.equal(lines.at(-1), '3 passed, 0 failed, 0 skipped')
  assert.deepEqual(
    lines.filter((line) => /^[#ℹ] (tests|pass|fail) /.test(line)),
    ['# tests 3', '# pass 3', '# fail 0'],
  )
  const pids = lines.filter((line) => line.startsWith('pid '))
  assert.equal(pids.length, 3)
  assert.equal(new Set(pids).size, 2)
})

test('up to eight files with sockets share a process', () => {
  for (let n = 1; n <= 9; n++) write(`many/${n}.live.test.ts`, `test('${n}', () => {${pid}})`)
  const { lines } = runTests(path.join(dir, 'many'))
  assert.equal(lines.at(-1), '9 passed, 0 failed, 0 skipped')
  const pids = lines.filter((line) => line.startsWith('pid '))
  const counts = [...new Set(pids)].map((one) => pids.filter((other) => other === one).length)
  assert.deepEqual(counts.sort(), [4, 5])
})

test('a failure in either group fails the run', () => {
  const { status, lines } = runTests(path.join(dir, 'bad'))
  assert.equal(status, 1)
  assert.equal(lines.at(-1), '0 passed, 2 failed, 1 skipped')
})

test('a file that cannot be loaded fails and keeps no other from running', () => {
  const { status, lines } = runTests(path.join(dir, 'broken'))
  assert.equal(status, 1)
  assert.equal(lines.at(-1), '1 passed, 1 failed, 0 skipped')
})

test('-slowest prints the CPU time of the files that used most of it, and of all', () => {
  write('busy/a.live.test.ts', "test('a', () => { for (let n = 0; n < 1e9; n++); })")
  write('busy/b.live.test.ts', "test('b', () => {})")
  const { lines } = runTests(path.join(dir, 'busy'), '-slowest=1')
  const times = lines
    .filter((line) => /^ +\d+\.\d\d s {2}/.test(line))
    .map((line) => line.slice(line.indexOf(' s ') + 4))
  assert.deepEqual(times, [
    path.relative(path.resolve(import.meta.dirname, '../..'), path.join(dir, 'busy/a.live.test.ts')),
    'start of test processes: 1',
    'of CPU time in 2 files and the processes that they start',
  ])
  const { status, errors } = runTests('-slowest=all')
  assert.equal(status, 2)
  assert.match(errors, /-slowest=<count>/)
})

test('a name pattern picks tests, and an argument that leads nowhere is refused', () => {
  const files = [path.join(dir, 'good/a.test.ts'), path.join(dir, 'good/b.test.ts')]
  assert.equal(runTests(...files, '--test-name-pattern=^a$').lines.at(-1), '1 passed, 0 failed, 0 skipped')
  const nowhere = runTests(path.join(dir, 'nothing'))
  assert.equal(nowhere.status, 2)
  assert.match(nowhere.errors, /nothing: no tests there/)
  assert.equal(runTests('--watch').status, 2)
})

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { startErrorLine } from './start-error.ts'

test('a full, read-only or failing disk gives one line with the file, the cause and the next step', () => {
  const failed = (code: string, syscall = 'open') =>
    Object.assign(new Error(`${code}: something, open '/x/audit.jsonl'`), { code, syscall, path: '/x/audit.jsonl' })
  assert.equal(
    startErrorLine(failed('ENOSPC')),
    '/x/audit.jsonl: the disk is full (ENOSPC); free some space, then start again',
  )
  assert.match(
    startErrorLine(failed('EROFS', 'mkdir')) ?? '',
    /the file system is read-only \(EROFS\); mount it writable/,
  )
  assert.match(startErrorLine(failed('EACCES')) ?? '', /permission denied/)
  assert.match(startErrorLine(Object.assign(new Error('disk'), { errcode: 13 })) ?? '', /^the disk is full \(ENOSPC\)/)
  const ofAPort = Object.assign(new Error('listen EACCES: 127.0.0.1:80'), { code: 'EACCES', syscall: 'listen' })
  assert.equal(startErrorLine(ofAPort), 'listen EACCES: 127.0.0.1:80')
  assert.equal(startErrorLine(new Error('journal /x is damaged\n    at x')), 'journal /x is damaged')
  assert.equal(startErrorLine(new TypeError('x is not a function')), null)
})

test('a program that cannot start prints one line without a stack, and exits 1', (t) => {
  const dir = mkdtempSync(path.join(tmpdir(), 'plat-'))
  t.after(() => rmSync(dir, { recursive: true }))
  mkdirSync(path.join(dir, 'resources'))
  // A directory in place of the lock file: the lock cannot be opened, and no plat up is running.
  mkdirSync(path.join(dir, '.plat', 'lock'), { recursive: true, mode: 0o700 })
  const plat = path.resolve(import.meta.dirname, '../../apps/cli/bin/plat.mjs')
  const run = () => spawnSync(process.execPath, [plat, 'up', dir, '-listen', '127.0.0.1:0'], { encoding: 'utf8' })
  const { status, stderr } = run()
  assert.equal(status, 1)
  assert.match(stderr, /^plat: .*lock: the file cannot be opened or made \(CANTOPEN\); .*\n$/)
  rmSync(path.join(dir, '.plat'), { recursive: true })
  const identity = path.resolve(import.meta.dirname, '../../services/identity/bin/plat-identity.mjs')
  const broker = spawnSync(process.execPath, [identity, '-audit-path', '/dev/full/audit.jsonl'], { encoding: 'utf8' })
  assert.equal(broker.status, 1)
  assert.equal(broker.stderr.trim().split('\n').length, 1, broker.stderr)
})

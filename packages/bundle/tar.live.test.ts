import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { readTar, writeTar } from './tar.ts'

function folder(t: TestContext): string {
  const dir = mkdtempSync(path.join(tmpdir(), 'plat-'))
  t.after(() => rmSync(dir, { recursive: true }))
  return dir
}

test("archives of the system's tar are read, in both formats that it writes for short names", (t) => {
  const dir = folder(t)
  mkdirSync(path.join(dir, 'a'))
  writeFileSync(path.join(dir, 'a/b.json'), '{}')
  writeFileSync(path.join(dir, 'c.json'), 'x'.repeat(2000))
  for (const format of ['ustar', 'gnu']) {
    const archive = execFileSync('tar', [`--format=${format}`, '-C', dir, '-cf', '-', 'c.json', 'a/b.json'])
    const read = readTar(archive, 10)
    assert.ok(typeof read !== 'string', String(read))
    assert.deepEqual(
      read.map(({ name, bytes }) => [name, bytes.length]),
      [
        ['c.json', 2000],
        ['a/b.json', 2],
      ],
    )
  }
})

test("links and folders in archives of the system's tar are refused", (t) => {
  const dir = folder(t)
  symlinkSync('/etc/passwd', path.join(dir, 'link'))
  mkdirSync(path.join(dir, 'folder'))
  const pack = (name: string) => readTar(execFileSync('tar', ['--format=ustar', '-C', dir, '-cf', '-', name]), 10)
  assert.equal(pack('link'), 'link is not a regular file')
  assert.match(String(pack('folder')), /the archive names "folder\/"/)
})

test("the system's tar unpacks written archives", (t) => {
  const dir = folder(t)
  const bytes = Buffer.from('ä'.repeat(700))
  execFileSync('tar', ['-C', dir, '-xf', '-'], { input: writeTar([{ name: 'a/b.txt', bytes }]) })
  assert.deepEqual(readFileSync(path.join(dir, 'a/b.txt')), bytes)
})

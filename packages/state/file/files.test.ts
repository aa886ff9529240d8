import assert from 'node:assert/strict'
import { constants, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { systemFiles } from './files.ts'

/** Returns the open flags of the file at that path in this process, from the kernel. */
function openFlags(file: string): number {
  const fd = readdirSync('/proc/self/fd').find((name) => isOpen(name, file))
  const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1]
  return Number.parseInt(flags ?? '', 8)
}

function isOpen(fd: string, file: string): boolean {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`) === file
  } catch {
    return false
  }
}

test('every write of an append handle is durable on return: the kernel reports the file as synchronous', {
  skip: process.platform !== 'linux' && 'the kernel reports the flags of an open file on Linux only',
}, () => {
  const dir = mkdtempSync(path.join(tmpdir(), 'plat-'))
  const file = path.join(dir, 'journal')
  const handle = systemFiles.openAppend(file)
  try {
    assert.equal(openFlags(file) & constants.O_DSYNC, constants.O_DSYNC)
  } finally {
    handle.close()
    rmSync(dir, { recursive: true })
  }
})

test('an append reports its bytes and keeps the previous content', async () => {
  const dir = mkdtempSync(path.join(tmpdir(), 'plat-'))
  const file = path.join(dir, 'journal')
  try {
    for (const text of ['one\n', 'two\n']) {
      const handle = systemFiles.openAppend(file)
      const written = await new Promise((resolve, reject) =>
        handle.append(Buffer.from(text), (fault, bytes) => (fault === null ? resolve(bytes) : reject(fault))),
      )
      assert.equal(written, text.length)
      handle.close()
    }
    assert.equal(readFileSync(file, 'utf8'), 'one\ntwo\n')
  } finally {
    rmSync(dir, { recursive: true })
  }
})

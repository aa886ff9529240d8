import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { FileClosedError, nodeCalls, OwnedFile } from './owned-file.ts'

function closeAndNote(fd: number, closed: number[]): void {
  closed.push(fd)
  nodeCalls.closeSync(fd)
}

test('a file is closed once, and a descriptor reused by another file is never touched', () => {
  const folder = tempFolder()
  const closed: number[] = []
  const calls = { ...nodeCalls, closeSync: (fd: number) => closeAndNote(fd, closed) }
  const file = OwnedFile.open(`${folder}/one`, 'a+', calls)
  file.close()
  // The kernel assigns the lowest free number, so this file gets the descriptor of the first.
  using stranger = OwnedFile.open(`${folder}/stranger`, 'a+')
  file.close()
  assert.throws(() => file.write(Buffer.from('x')), FileClosedError)
  assert.throws(() => file.append(Buffer.from('x'), () => {}), FileClosedError)
  for (const use of [() => file.size(), () => file.sync(), () => file.datasync(), () => file.truncate(0)])
    assert.throws(use, FileClosedError)
  assert.equal(closed.length, 1)
  stranger.write(Buffer.from('mine'))
  assert.equal(readFileSync(`${folder}/stranger`, 'utf8'), 'mine')
})

test('a file closed during a write keeps its descriptor until the write is done', async () => {
  const path = `${tempFolder()}/one`
  const closed: number[] = []
  const calls = { ...nodeCalls, closeSync: (fd: number) => closeAndNote(fd, closed) }
  const file = OwnedFile.open(path, 'a+', calls)
  const written = new Promise<number>((resolve) => file.append(Buffer.from('whole'), (_fault, count) => resolve(count)))
  file.close()
  assert.equal(closed.length, 0)
  assert.equal(await written, 5)
  assert.equal(closed.length, 1)
  assert.equal(readFileSync(path, 'utf8'), 'whole')
})

test('a failed close is not retried', () => {
  let closes = 0
  const closeSync = (fd: number) => {
    closes++
    nodeCalls.closeSync(fd)
    throw new Error('EIO')
  }
  const file = OwnedFile.open(`${tempFolder()}/one`, 'a+', { ...nodeCalls, closeSync })
  file.close()
  file.close()
  assert.equal(closes, 1)
})

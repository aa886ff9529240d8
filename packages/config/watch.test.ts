import assert from 'node:assert/strict'
import {
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { TestClock } from '@plat/core'
import { type FileWatch, MAX_WATCHED_BYTES, watchFile } from './watch.ts'

const root = mkdtempSync(path.join(os.tmpdir(), 'plat-'))
after(() => rmSync(root, { recursive: true }))
let folders = 0

interface Watched {
  path: string
  clock: TestClock
  watch: FileWatch
  seen: (string | null)[]
  errors: unknown[]
}

function watched(take: (text: string | null) => void | Promise<void> = () => {}): Watched {
  const folder = path.join(root, String(folders++))
  mkdirSync(folder)
  const file = path.join(folder, 'file.json')
  const clock = new TestClock()
  const seen: (string | null)[] = []
  const errors: unknown[] = []
  const watch = watchFile({
    path: file,
    everyMs: 2000,
    clock,
    onBytes: (bytes) => {
      const text = bytes === null ? null : Buffer.from(bytes).toString()
      seen.push(text)
      return take(text)
    },
    onError: (error) => errors.push(error),
  })
  return { path: file, clock, watch, seen, errors }
}

/** Advances one interval and waits for the check. */
async function nextLook({ clock, watch }: Watched): Promise<void> {
  await clock.advance(2000)
  await watch.check()
}

test('the first check passes the content, later ones only changes, and a missing file is null', async () => {
  const w = watched()
  await w.watch.check()
  writeFileSync(w.path, 'one')
  await nextLook(w)
  writeFileSync(w.path, 'one')
  await nextLook(w)
  writeFileSync(w.path, 'two')
  await nextLook(w)
  rmSync(w.path)
  await nextLook(w)
  assert.deepEqual(w.seen, [null, 'one', 'two', null])
  assert.deepEqual(w.errors, [])
})

test('the interval alone detects a change', async () => {
  const w = watched()
  writeFileSync(w.path, 'one')
  await w.clock.advance(1999)
  assert.deepEqual(w.seen, [])
  await w.clock.advance(1)
  while (w.seen.length === 0) await new Promise((done) => setImmediate(done))
  assert.deepEqual(w.seen, ['one'])
})

test('content is compared: other bytes with the same size and time are a change', async () => {
  const w = watched()
  writeFileSync(w.path, 'aaa')
  utimesSync(w.path, 1, 1)
  await w.watch.check()
  writeFileSync(w.path, 'bbb')
  utimesSync(w.path, 1, 1)
  await w.watch.check()
  assert.deepEqual(w.seen, ['aaa', 'bbb'])
})

test('the symlink swap of a mounted ConfigMap is detected', async () => {
  const w = watched()
  const folder = path.dirname(w.path)
  const version = (name: string, text: string) => {
    mkdirSync(path.join(folder, name))
    writeFileSync(path.join(folder, name, 'file.json'), text)
    symlinkSync(name, path.join(folder, '..tmp'))
    renameSync(path.join(folder, '..tmp'), path.join(folder, '..data'))
  }
  version('..1', 'one')
  symlinkSync('..data/file.json', w.path)
  await w.watch.check()
  version('..2', 'two')
  await w.watch.check()
  assert.deepEqual(w.seen, ['one', 'two'])
})

test('checks never overlap, and a check resolves after one that began after the call', async () => {
  let inside = 0
  let most = 0
  const release: (() => void)[] = []
  const w = watched(async () => {
    most = Math.max(most, ++inside)
    await new Promise<void>((resolve) => release.push(resolve))
    inside--
  })
  writeFileSync(w.path, 'one')
  const first = w.watch.check()
  while (release.length === 0) await new Promise((done) => setImmediate(done))
  writeFileSync(w.path, 'two')
  const [second, third] = [w.watch.check(), w.watch.check()]
  await w.clock.advance(10_000)
  assert.equal(release.length, 1)
  release[0]?.()
  await first
  while (release.length === 1) await new Promise((done) => setImmediate(done))
  release[1]?.()
  await Promise.all([second, third])
  assert.deepEqual(w.seen, ['one', 'two'])
  assert.equal(most, 1)
})

test('refused content is reported once and passed again only when it changes', async () => {
  const w = watched((text) => {
    if (text === 'bad') throw new Error('bad content')
  })
  writeFileSync(w.path, 'bad')
  await w.watch.check()
  await nextLook(w)
  assert.deepEqual(
    w.errors.map((error) => String(error)),
    ['Error: bad content'],
  )
  writeFileSync(w.path, 'good')
  await nextLook(w)
  assert.deepEqual(w.seen, ['bad', 'good'])
})

test('a file that cannot be read is an error, and its old content counts as new when it is back', async () => {
  const w = watched()
  writeFileSync(w.path, 'one')
  await w.watch.check()
  rmSync(w.path)
  mkdirSync(w.path)
  await w.watch.check()
  await w.watch.check()
  assert.equal(w.errors.length, 1)
  assert.match(String(w.errors[0]), /EISDIR/)
  rmSync(w.path, { recursive: true })
  writeFileSync(w.path, 'one')
  await w.watch.check()
  assert.deepEqual(w.seen, ['one', 'one'])
})

test('a missing file is read from its compressed form, until it exists itself', async () => {
  const w = watched()
  writeFileSync(`${w.path}.gz`, gzipSync('one'))
  await w.watch.check()
  await nextLook(w)
  writeFileSync(`${w.path}.gz`, gzipSync('two'))
  await nextLook(w)
  writeFileSync(w.path, 'three')
  await nextLook(w)
  rmSync(w.path)
  rmSync(`${w.path}.gz`)
  await nextLook(w)
  assert.deepEqual(w.seen, ['one', 'two', 'three', null])
  assert.deepEqual(w.errors, [])
})

test('a compressed file that is damaged, truncated or beyond the limit when decompressed is refused', async () => {
  const w = watched()
  const bomb = gzipSync(Buffer.alloc(MAX_WATCHED_BYTES + 1))
  for (const content of [Buffer.from('no gzip'), gzipSync('one').subarray(0, 12), bomb]) {
    writeFileSync(`${w.path}.gz`, content)
    await nextLook(w)
  }
  assert.deepEqual(
    w.errors.map((error) => String(error).replace(w.path, '')),
    [
      'Error: .gz: it is not valid gzip',
      'Error: .gz: it is not valid gzip',
      `Error: .gz: it has more than ${MAX_WATCHED_BYTES} bytes`,
    ],
  )
  assert.deepEqual(w.seen, [])
})

test('a file beyond the limit is refused unread', async () => {
  const w = watched()
  writeFileSync(w.path, '')
  truncateSync(w.path, MAX_WATCHED_BYTES + 1)
  await w.watch.check()
  assert.match(String(w.errors[0]), /is larger than 67108864 bytes/)
  assert.deepEqual(w.seen, [])
})

test('without onError the first check rejects, so that a start cannot miss it', async () => {
  const clock = new TestClock()
  const watch = watchFile({ path: root, everyMs: 1000, clock, onBytes: () => {} })
  await assert.rejects(watch.check(), /EISDIR/)
  watch.stop()
})

test('after stop nothing is passed any more', async () => {
  const w = watched()
  w.watch.stop()
  writeFileSync(w.path, 'one')
  await w.clock.advance(10_000)
  await w.watch.check()
  assert.deepEqual(w.seen, [])
})

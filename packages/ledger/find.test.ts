import assert from 'node:assert/strict'
import { test } from 'node:test'
import { firstLine, lastLine } from './find.ts'
import { MAX_LINE_BYTES } from './format.ts'
import type { ReadAt } from './lines.ts'

/** A source that returns at most `most` bytes for each read. */
function sourceOf(bytes: Buffer, most: number): ReadAt {
  return {
    read: (target, position) =>
      bytes.copy(target, 0, position, Math.min(position + Math.min(most, target.length), bytes.length)),
  }
}

test('the last line is found in a source that returns a few bytes for each read, as a compressed file does between frames', async () => {
  for (const last of ['b', 'b'.repeat(5000), 'b'.repeat(70_000)]) {
    const bytes = Buffer.from(`${'a'.repeat(100)}\n${last}\n`)
    assert.equal((await lastLine(sourceOf(bytes, 999), bytes.length))?.toString(), last)
  }
  assert.equal((await lastLine(sourceOf(Buffer.from('one\n'), 2), 4))?.toString(), 'one')
  for (const text of ['', 'no end', 'one\ntorn']) {
    assert.equal(await lastLine(sourceOf(Buffer.from(text), 9), text.length), null)
  }
  const long = Buffer.alloc(8 * MAX_LINE_BYTES, 'x')
  long[long.length - 1] = 0x0a
  assert.equal(await lastLine(sourceOf(long, long.length), long.length), null)
})

test('a search in a file without lines reads a bounded part of it', async () => {
  const size = 256 * 1024 * 1024
  let bytes = 0
  const source: ReadAt = {
    read(target) {
      bytes += target.length
      target.fill(0)
      return target.length
    },
  }
  assert.equal(await firstLine(source, { from: 0, to: size }, () => true), size)
  assert.ok(bytes < size / 4, String(bytes))
})

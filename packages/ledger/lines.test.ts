import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lineAt } from './find.ts'
import { type ReadAt, scanLines } from './lines.ts'

/** Reads 40 bytes at a time, and lets other work run before each read. */
function slowly(text: string): ReadAt {
  const bytes = Buffer.from(text)
  return {
    async read(target, position) {
      await null
      return bytes.copy(target, 0, position, position + 40)
    },
  }
}

async function linesOf(text: string): Promise<string[]> {
  const found: string[] = []
  const rest = await scanLines(slowly(text), {
    onLine: (buffer, start, end) => found.push(buffer.toString('utf8', start, end)) > 0,
  })
  return [...found, rest.tail.toString()]
}

test('scans find only the lines of their files, at the same time and one after the other', async () => {
  const texts = ['a', 'b', 'c'].map((letter) => Array.from({ length: 50 }, (_, at) => letter.repeat(at)).join('\n'))
  for (let round = 0; round < 2; round++) {
    assert.deepEqual(
      await Promise.all(texts.map(linesOf)),
      texts.map((text) => text.split('\n')),
    )
  }
  assert.deepEqual(await linesOf('one\ntwo'), ['one', 'two'])
  assert.deepEqual(await linesOf(''), [''])
})

test('a line without an end, as in a damaged file, is given up at the limit of a record', async () => {
  let largest = 0
  const endless: ReadAt = {
    read(target) {
      largest = Math.max(largest, target.length)
      return target.fill(0).length
    },
  }
  assert.equal(await lineAt(endless, 0), null)
  assert.ok(largest <= 4 * 1024 * 1024, `${largest} bytes at once`)
})

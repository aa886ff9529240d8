import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { followFile, missingFile } from './follow.ts'

test('each version of a followed file is published or refused, and a refusal publishes nothing', async (t) => {
  const dir = await mkdtemp(path.join(os.tmpdir(), 'plat-follow-'))
  t.after(() => rm(dir, { recursive: true }))
  const file = path.join(dir, 'file')
  const seen: unknown[] = []
  const watch = followFile({
    path: file,
    everySeconds: 1,
    clock: new TestClock(),
    decode(bytes) {
      if (bytes === null) return missingFile
      const text = Buffer.from(bytes).toString()
      return text === 'bad' ? { problems: ['is bad'] } : { text }
    },
    publish: ({ text }) => {
      if (text === 'worse') throw new Error('cannot be published')
      seen.push(text)
    },
    refuse: (problems) => seen.push(problems),
  })
  t.after(() => watch.stop())
  await watch.check()
  for (const text of ['one', 'bad', 'worse', 'two']) {
    await writeFile(file, text)
    await watch.check()
  }
  await rm(file)
  await watch.check()
  assert.deepEqual(seen, [['no such file'], 'one', ['is bad'], ['cannot be published'], 'two', ['no such file']])
})

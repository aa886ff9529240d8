import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { TestClock } from '@plat/core'
import { GATHER_MS, LineWriter } from './line-writer.ts'

test('a lone line is written at once, lines right after it together, in order', async () => {
  const clock = new TestClock()
  const writes: string[] = []
  const writer = new LineWriter({ write: (lines) => void writes.push(lines) }, clock)
  writer.write('1\n')
  writer.write('2\n')
  await clock.advance(GATHER_MS - 1)
  writer.write('3\n')
  assert.deepEqual(writes, ['1\n'])
  await clock.advance(1)
  assert.deepEqual(writes, ['1\n', '2\n3\n'])
  writer.write('4\n')
  assert.deepEqual(writes, ['1\n', '2\n3\n', '4\n'])
})

test('a flood of lines does not accumulate in memory', () => {
  const writes: string[] = []
  const writer = new LineWriter({ write: (lines) => void writes.push(lines) }, new TestClock())
  const line = `${'x'.repeat(1023)}\n`
  for (let n = 0; n < 129; n++) writer.write(line)
  assert.deepEqual(
    writes.map((lines) => lines.length / line.length),
    [1, 64, 64],
  )
})

test('a process that ends while lines are buffered writes them', () => {
  const url = pathToFileURL(`${import.meta.dirname}/line-writer.ts`).href
  const program = `import { writeSync } from 'node:fs'
    import { LineWriter } from ${JSON.stringify(url)}
    const writer = new LineWriter({ write: (lines) => writeSync(1, lines) })
    for (const line of ['a', 'b', 'c']) writer.write(line)
    throw new Error('over')`
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' })
  assert.equal(stdout, 'abc')
})

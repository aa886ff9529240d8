import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { TurnWriter } from './turn-writer.ts'

test('the first line of a turn is written at once, the others of that turn together, in order', async () => {
  const writes: string[] = []
  const writer = new TurnWriter({ write: (lines) => void writes.push(lines) })
  writer.write('1\n')
  writer.write('2\n')
  writer.write('3\n')
  assert.deepEqual(writes, ['1\n'])
  await turn()
  assert.deepEqual(writes, ['1\n', '2\n3\n'])
  writer.write('4\n')
  assert.deepEqual(writes, ['1\n', '2\n3\n', '4\n'])
})

test('a process that ends in the middle of a turn writes what it has said', () => {
  const url = pathToFileURL(`${import.meta.dirname}/turn-writer.ts`).href
  const program = `import { writeSync } from 'node:fs'
    import { TurnWriter } from ${JSON.stringify(url)}
    const writer = new TurnWriter({ write: (lines) => writeSync(1, lines) })
    for (const line of ['a', 'b', 'c']) writer.write(line)
    throw new Error('over')`
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' })
  assert.equal(stdout, 'abc')
})

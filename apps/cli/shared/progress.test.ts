import assert from 'node:assert/strict'
import { test } from 'node:test'
import { progressBar } from './progress.ts'

const MB = 1_000_000

function drawn(isTTY: boolean) {
  const written: string[] = []
  let now = 1000
  const clock = { monotonic: () => now }
  const bar = progressBar({ isTTY, write: (text) => written.push(text) }, { least: 10 * MB, isBytes: true, clock })
  const at = (ms: number, done: number) => {
    now = 1000 + ms
    bar.show(done, 100 * MB)
  }
  return { bar, at, written }
}

test('a terminal shows percent, rate and time left on one line that is removed at the end', () => {
  const { bar, at, written } = drawn(true)
  at(10, 0)
  at(50, MB)
  at(4000, 40 * MB)
  bar.clear()
  assert.equal(written.length, 3, 'no more than five a second')
  assert.match(written[1] ?? '', /^\r█{12}░{18} {2}40 % {2}10 MB\/s {2}6s left +$/)
  assert.ok(written.every((text) => text.length <= 80 && !text.includes('\n')))
  assert.match(written[2] ?? '', /^\r +\r$/)
})

test('short work, and a stream that is not a terminal, show no progress', () => {
  const { bar, at, written } = drawn(false)
  at(4000, 40 * MB)
  bar.clear()
  const short: string[] = []
  progressBar({ isTTY: true, write: (text) => short.push(text) }, { least: 1000 }).show(1, 100)
  assert.deepEqual([...written, ...short], [])
})

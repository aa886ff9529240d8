import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { tellRefused } from './up.ts'

test('the terminal of a running plat says once what is refused, and once that it is mended', () => {
  const clock = new TestClock()
  const said: string[] = []
  let refused = ['known from the start']
  const stop = tellRefused(
    { refused: () => refused },
    { out: () => assert.fail('it is no answer'), err: (text) => said.push(text) },
    clock,
  )
  clock.advance(1000)
  assert.deepEqual(said, [])
  refused = ['a.yaml:1: wrong']
  clock.advance(3000)
  assert.deepEqual(said, ['refused, and denied until fixed: a.yaml:1: wrong', 'fixed: known from the start'])
  refused = []
  stop()
  clock.advance(3000)
  assert.equal(said.length, 2)
})

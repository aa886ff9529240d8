import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { TestClock } from '@plat/core'
import { type Problems, reportProblems } from './problems.ts'

test('a running plat reports a problem once when it appears, and once when it is fixed', async () => {
  const clock = new TestClock()
  const lines: string[] = []
  let problems: Problems = { refused: ['known from the start'], warnings: [] }
  const stop = reportProblems(
    { problems: async () => problems },
    { out: () => assert.fail('a problem is printed on stderr'), err: (text) => lines.push(text) },
    clock,
  )
  const pass = async () => {
    clock.advance(1000)
    await setImmediate()
  }
  await pass()
  assert.deepEqual(lines, [])
  problems = { refused: ['a.yaml:1: wrong'], warnings: ['b.yaml:2: no server is named "x"'] }
  await pass()
  await pass()
  assert.deepEqual(lines.splice(0), [
    'refused, and denied until fixed: a.yaml:1: wrong',
    'warning: b.yaml:2: no server is named "x"',
    'fixed: known from the start',
  ])
  problems = { refused: [], warnings: [] }
  await pass()
  assert.deepEqual(lines.splice(0), ['fixed: a.yaml:1: wrong', 'fixed: b.yaml:2: no server is named "x"'])
  stop()
  problems = { refused: ['after the end'], warnings: [] }
  await pass()
  assert.deepEqual(lines, [])
})

test('problems that cannot be looked for are a line, from the first time on, and end nothing', async () => {
  const clock = new TestClock()
  const lines: string[] = []
  let found: Problems | null = null
  const stop = reportProblems(
    {
      problems: async () => {
        if (found === null) throw new Error('no permission')
        return found
      },
    },
    { out: () => assert.fail('a problem is printed on stderr'), err: (text) => lines.push(text) },
    clock,
  )
  const pass = async () => {
    await setImmediate()
    clock.advance(1000)
    await setImmediate()
  }
  await pass()
  assert.deepEqual(lines.splice(0), Array(2).fill('the resources could not be checked: Error: no permission'))
  found = { refused: [], warnings: [] }
  await pass()
  found = { refused: ['a.yaml:1: wrong'], warnings: [] }
  await pass()
  assert.deepEqual(lines, ['refused, and denied until fixed: a.yaml:1: wrong'])
  stop()
})

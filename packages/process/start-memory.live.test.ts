import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { giveBackStartMemoryWhenIdle } from './start-memory.ts'

const MODULE = new URL('./start-memory.ts', import.meta.url).href

/** Allocates like a start, releases it, and prints the heap before and after in bytes, and whether a global gc remains. */
const PROGRAM = `
  import { giveBackStartMemory } from ${JSON.stringify(MODULE)}
  let left = []
  for (let n = 0; n < 300_000; n++) left.push({ n, text: String(n) })
  left = null
  const before = process.memoryUsage().heapTotal
  giveBackStartMemory()
  console.log(JSON.stringify({ before, after: process.memoryUsage().heapTotal, gc: typeof globalThis.gc }))
`

test('memory of the start is released, and no gc function remains callable', () => {
  const ran = spawnSync(process.execPath, ['--input-type=module', '-e', PROGRAM], { encoding: 'utf8' })
  assert.equal(ran.status, 0, ran.stderr)
  const { before, after, gc } = JSON.parse(ran.stdout)
  assert.ok(after < before / 2, `${before} bytes of heap before, ${after} after`)
  assert.equal(gc, 'undefined')
})

test('memory of the start is released once the process was idle, and not before', async () => {
  const clock = new TestClock()
  const loads = [1, 0.9, 0.2, 0.05, 0]
  let collected = 0
  giveBackStartMemoryWhenIdle({ clock, utilization: () => loads.shift() ?? 0, collect: () => collected++ })
  await clock.advance(500)
  assert.equal(collected, 0)
  await clock.advance(250)
  assert.equal(collected, 1)
  await clock.advance(5_000)
  assert.equal(collected, 1)
})

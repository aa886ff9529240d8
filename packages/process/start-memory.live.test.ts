import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'

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

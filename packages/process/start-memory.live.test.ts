import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'

const MODULE = new URL('./start-memory.ts', import.meta.url).href

/** Makes what a start leaves behind, gives it back, and tells the heap before and after in bytes, and whether a collector is left lying about. */
const PROGRAM = `
  import { giveBackStartMemory } from ${JSON.stringify(MODULE)}
  let left = []
  for (let n = 0; n < 300_000; n++) left.push({ n, text: String(n) })
  left = null
  const before = process.memoryUsage().heapTotal
  giveBackStartMemory()
  console.log(JSON.stringify({ before, after: process.memoryUsage().heapTotal, gc: typeof globalThis.gc }))
`

test('what starting left behind is given back, and no collector is left for others to call', () => {
  const ran = spawnSync(process.execPath, ['--input-type=module', '-e', PROGRAM], { encoding: 'utf8' })
  assert.equal(ran.status, 0, ran.stderr)
  const { before, after, gc } = JSON.parse(ran.stdout)
  assert.ok(after < before / 2, `${before} bytes of heap before, ${after} after`)
  assert.equal(gc, 'undefined')
})

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'

const MODULE = new URL('./launch.mjs', import.meta.url).href

/** Prints whether callbacks before and after a full collection have objects of the hidden class that is kept. */
const PROGRAM = `
  import { executionAsyncResource } from 'node:async_hooks'
  import { keepTickShape, keptTicks } from ${JSON.stringify(MODULE)}
  keepTickShape()
  const same = () => new Promise((resolve) =>
    process.nextTick(() => resolve(%HaveSameMap(keptTicks[0], executionAsyncResource()))))
  const before = await same()
  await new Promise((resolve) => setImmediate(resolve))
  gc()
  console.log(before, await same())
`

test('the hidden class of callbacks of process.nextTick survives a full collection', () => {
  const flags = ['--expose-gc', '--allow-natives-syntax', '--input-type=module', '-e', PROGRAM]
  const ran = spawnSync(process.execPath, flags, { encoding: 'utf8' })
  assert.equal(ran.stdout.trim(), 'true true', ran.stderr)
})

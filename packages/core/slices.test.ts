import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test } from 'node:test'
import { mapInSlices, runAtOnce, runInSlices, Slices, slicedSha256 } from './slices.ts'

test('a sliced hash equals the hash of the whole', async () => {
  const bytes = Buffer.alloc(3 * 1024 * 1024 + 5, 'plat')
  for (const size of [0, 1, 1024 * 1024 - 1, 1024 * 1024, 1024 * 1024 + 1, bytes.length])
    assert.equal(await slicedSha256(bytes.subarray(0, size)), hash('sha256', bytes.subarray(0, size)))
})

test('other callbacks run between slices', async () => {
  const slices = new Slices()
  assert.equal(slices.isOver, false)
  let turns = 0
  setImmediate(() => turns++)
  for (const start = performance.now(); performance.now() - start < 20; );
  assert.equal(slices.isOver, true)
  await slices.next()
  assert.deepEqual([turns, slices.isOver], [1, false])
})

test('items are mapped in order, and other callbacks run meanwhile', async () => {
  let turns = 0
  setImmediate(() => turns++)
  const mapped = await mapInSlices(['a', 'b', 'c'], (item, index) => {
    for (const start = performance.now(); performance.now() - start < 8; );
    return `${item}${index}`
  })
  assert.deepEqual([mapped, turns], [['a0', 'b1', 'c2'], 1])
  assert.deepEqual(await mapInSlices([], String), [])
})

test('work in steps has the same result at once and in slices, between which other callbacks run', async () => {
  let turns = 0
  function* steps(): Generator<undefined, number> {
    for (let step = 0; step < 3; step++) {
      for (const start = performance.now(); performance.now() - start < 8; );
      yield
    }
    return 7
  }
  setImmediate(() => turns++)
  assert.deepEqual([runAtOnce(steps()), turns], [7, 0])
  assert.deepEqual([await runInSlices(steps()), turns], [7, 1])
})

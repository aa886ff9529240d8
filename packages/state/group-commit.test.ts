import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { TestClock } from '@plat/core'
import type { AppendHandle } from './file/files.ts'
import { GATHER_TURNS, GroupCommit } from './group-commit.ts'

/** A disk that takes one turn per write, and the entries of each write. */
function setUp() {
  const writes: number[] = []
  const handle: AppendHandle = {
    size: () => 0,
    read: () => 0,
    write: (bytes) => bytes.length,
    append(bytes, done) {
      writes.push(bytes.length)
      setImmediate(() => done(null, bytes.length))
    },
    truncate: () => {},
    close: () => {},
  }
  const commit = new GroupCommit({ handle, clock: new TestClock() })
  /** Adds an entry of one byte. */
  const add = () =>
    new Promise<void>((resolve, reject) => {
      const { buffer, length } = commit.room(1)
      buffer[length] = 0x0a
      commit.add(1, { durable: resolve, failed: reject }, true)
    })
  return { writes, add }
}

test('entries of consecutive turns share a commit; the first turn without one starts it', async () => {
  const { writes, add } = setUp()
  const reported: Promise<void>[] = []
  for (let n = 0; n < 3; n++) {
    reported.push(add(), add())
    await turn()
  }
  await Promise.all(reported)
  assert.deepEqual(writes, [6])
})

test('a lone entry waits for no other', async () => {
  const { writes, add } = setUp()
  const reported = add()
  await turn()
  await turn()
  assert.deepEqual(writes, [1])
  await reported
})

test('an endless stream of entries does not postpone a commit for ever', async () => {
  const { writes, add } = setUp()
  const reported: Promise<void>[] = []
  for (let n = 0; n < GATHER_TURNS + 3; n++) {
    reported.push(add(), add())
    await turn()
  }
  assert.equal(writes[0], (GATHER_TURNS + 1) * 2)
  await Promise.all(reported)
})

test('while callers of the last commit are missing, idle turns are waited out up to a limit', async () => {
  const { writes, add } = setUp()
  const callers = (size: number) => Array.from({ length: size }, () => add())
  await Promise.all(callers(16))
  const reported = callers(15)
  await turn()
  await turn()
  await turn()
  assert.deepEqual(writes, [16])
  reported.push(add())
  await Promise.all(reported)
  assert.deepEqual(writes, [16, 16])
  // The end of a turn starts a write, hence one more turn; the sixteenth entry never arrives.
  const late = callers(15)
  for (let n = 0; n < GATHER_TURNS + 2; n++) await turn()
  assert.deepEqual(writes, [16, 16, 15])
  await Promise.all(late)
})

test('two halves of callers that separated share a commit again', async () => {
  const { writes, add } = setUp()
  const caller = async () => {
    for (let n = 0; n < 4; n++) await add()
  }
  const first = Array.from({ length: 8 }, caller)
  while (writes.length === 0) await turn()
  await Promise.all([...first, ...Array.from({ length: 8 }, caller)])
  assert.deepEqual(writes.slice(0, 2), [8, 16])
})

test('when all notified callers are back, no further turn is waited for', async () => {
  const { writes, add } = setUp()
  const callers = () => Array.from({ length: 16 }, () => add())
  await Promise.all(callers())
  const reported = callers()
  await turn()
  assert.deepEqual(writes, [16, 16])
  await Promise.all(reported)
})

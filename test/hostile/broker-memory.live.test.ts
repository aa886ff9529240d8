import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { makeKeys, startIdentity } from '../../bench/harness/plat.ts'
import { sendOneByteChunks } from './one-byte.ts'

const MAX_GROWTH_BYTES = 64 * 1024 * 1024

test('80 connections without a token that send one-byte chunks leave the broker at most 64 MiB above idle, and are refused', async (t) => {
  const dir = tempFolder()
  const broker = await startIdentity(dir, await makeKeys(dir))
  t.after(() => broker.stop())
  const { idleBytes, mostBytes, refusals } = await sendOneByteChunks(broker)
  const grown = mostBytes - idleBytes
  t.diagnostic(`idle ${idleBytes}, ${grown} above it`)
  assert.ok(grown <= MAX_GROWTH_BYTES, `${grown} bytes`)
  // A broker that is too busy refuses as overloaded, before it reads.
  assert.deepEqual(new Set(refusals).difference(new Set(['400', '503'])), new Set())
  assert.ok(refusals.length > 0)
})

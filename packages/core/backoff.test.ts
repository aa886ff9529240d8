import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Backoff } from './backoff.ts'

const backoffWith = (byte: number) =>
  new Backoff({ firstMs: 200, maxMs: 30_000, ids: { random: (bytes) => new Uint8Array(bytes).fill(byte) } })

test('pauses double up to the cap', () => {
  const backoff = backoffWith(0)
  assert.deepEqual(
    [0, 1, 2, 3].map((failures) => backoff.pauseMs(failures)),
    [200, 400, 800, 1600],
  )
  for (const failures of [8, 1000, Number.POSITIVE_INFINITY]) assert.equal(backoff.pauseMs(failures), 30_000)
})

test('jitter removes at most half of a pause', () => {
  const least = backoffWith(255)
  assert.ok(least.pauseMs(0) > 100 && least.pauseMs(0) < 101)
  assert.ok(least.pauseMs(1000) > 15_000 && least.pauseMs(1000) < 15_001)
  assert.equal(backoffWith(128).pauseMs(0), 200 * (1 - 0x8080 / 65_536 / 2))
})

test('Retry-After is added to the pause, up to the cap', () => {
  const backoff = backoffWith(0)
  assert.equal(backoff.pauseMs(0, 1000), 1200)
  assert.equal(backoff.pauseMs(0, 99_999_000), 30_200)
})

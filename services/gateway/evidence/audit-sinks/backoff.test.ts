import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SinkBackoff } from './backoff.ts'

const drawing = (byte: number) => ({ random: () => Uint8Array.of(byte) })

test('backoff doubles up to a minute, with jitter in its second half', () => {
  const pauses = (byte: number) => {
    const backoff = new SinkBackoff(100, drawing(byte))
    return Array.from({ length: 9 }, () => backoff.failed())
  }
  assert.deepEqual(pauses(0), [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000])
  assert.deepEqual(pauses(128), [750, 1500, 3000, 6000, 12_000, 24_000, 45_000, 45_000, 45_000])
})

test('a success resets the backoff', () => {
  const backoff = new SinkBackoff(100, drawing(0))
  backoff.failed()
  backoff.failed()
  assert.equal(backoff.isFailing, true)
  backoff.succeeded()
  assert.equal(backoff.isFailing, false)
  assert.equal(backoff.failed(), 1000)
})

test('a refused batch is halved down to one record, and grows back to the configured size', () => {
  const backoff = new SinkBackoff(100, drawing(0))
  const limits = []
  for (let size = backoff.limit; size > 1; size = backoff.limit) {
    backoff.narrow(size)
    limits.push(backoff.limit)
  }
  assert.deepEqual(limits, [50, 25, 13, 7, 4, 2, 1])
  const grown = Array.from({ length: 8 }, () => {
    backoff.succeeded()
    return backoff.limit
  })
  assert.deepEqual(grown, [2, 4, 8, 16, 32, 64, 100, 100])
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { PROOFS_OF_RELEASE, ProofShares } from './proof-shares.ts'

test('a workload that makes keys without end uses up the share of its own release alone', async () => {
  const clock = new TestClock()
  let refusals = 0
  const shares = new ProofShares(clock, () => refusals++)
  for (let n = 0; n < PROOFS_OF_RELEASE; n++) assert.ok(shares.admit('greedy'))
  assert.equal(shares.admit('greedy'), false)
  assert.equal(refusals, 1)
  assert.ok(shares.admit('other'))
  await clock.advance(5 * 60_000)
  assert.ok(shares.admit('greedy'))
})

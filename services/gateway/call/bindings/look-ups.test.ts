import assert from 'node:assert/strict'
import { test } from 'node:test'
import { poolTable, SharedPool, TestClock } from '@plat/core'
import { silentLog } from '@plat/process'
import { testIdentity } from '../testing/identity.ts'
import { LookUps } from './look-ups.ts'

function setUp(catchUp: (() => Promise<void>) | null) {
  const clock = new TestClock()
  const pool = new SharedPool({ name: 'unknown_ids' })
  const lookUps = new LookUps({ catchUp, pool, clock, log: silentLog })
  const lookUp = (agent: string, session: string) => lookUps.catchUpFor({ ...testIdentity, agent, session })
  return { clock, pool, lookUp }
}

test('a session that guesses ids uses its share of reads for a second, while others look up', async () => {
  let reads = 0
  const { clock, pool, lookUp } = setUp(async () => void reads++)
  const [agentShare, sessionShare] = poolTable.unknown_ids.shares.map(({ max }) => max)
  const guess = (count: number, session: string) =>
    Array.from({ length: count }, () => lookUp('guesser', session)).filter((looked) => looked !== null).length
  assert.equal(guess(1_000, 's1'), sessionShare)
  assert.equal(guess(1_000, 's2'), sessionShare)
  for (let session = 3; session < 100; session++) guess(1_000, `s${session}`)
  assert.equal(reads, agentShare)
  await lookUp('other', 's1')
  assert.equal(reads, Number(agentShare) + 1)
  await clock.advance(1_000)
  assert.equal(pool.used, 0)
  assert.equal(guess(1_000, 's1'), sessionShare)
})

test('without other replicas nothing is looked up, and a read that fails leaves ids unknown', async () => {
  assert.equal(setUp(null).lookUp('a', 's'), null)
  await setUp(() => Promise.reject(new Error('unreachable'))).lookUp('a', 's')
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type PoolBound, TestClock } from '@plat/core'
import { testIdentity } from '../../../call/testing/identity.ts'
import { AbandonedCalls } from './abandoned.ts'

function setup() {
  const clock = new TestClock()
  const counts = { open: 0, aborted: 0 }
  const pool: { used: () => number; readonly refused: PoolBound[] } = { used: () => -1, refused: [] }
  const metrics = {
    abandoned: (count: number) => {
      counts.open = count
    },
    abandonedAborted: () => {
      counts.aborted++
    },
  }
  const calls = new AbandonedCalls(clock, metrics, {
    watch: (used) => {
      pool.used = used
    },
    refused: (bound) => void pool.refused.push(bound),
  })
  const aborted: string[] = []
  const ends = new Map<string, () => void>()
  const add = (name: string, session: string, agent = 'a') =>
    calls.add(
      { ...testIdentity, agent, session },
      {
        abort: () => {
          aborted.push(name)
          ends.get(name)?.()
        },
        discard: (over) => ends.set(name, over),
      },
    )
  return { clock, counts, pool, aborted, ends, add }
}

test('above the share of a session its oldest abandoned call is aborted, and those of other sessions are not', () => {
  const { add, aborted, counts, pool } = setup()
  add('other', 's2')
  for (let nth = 1; nth <= 6; nth++) add(`call ${nth}`, 's1')
  assert.deepEqual(aborted, ['call 1', 'call 2'])
  assert.deepEqual(counts, { open: 5, aborted: 2 })
  assert.deepEqual([pool.used(), pool.refused], [5, ['share', 'share']])
})

test('all sessions of an agent have one share, and other agents are not affected', () => {
  const { add, aborted, counts } = setup()
  add('other', 's', 'b')
  for (let nth = 1; nth <= 17; nth++) add(`call ${nth}`, `s${nth}`)
  assert.deepEqual(aborted, ['call 1'])
  assert.deepEqual(counts, { open: 17, aborted: 1 })
})

test('an abandoned call ends with its upstream, or after five minutes', async () => {
  const { clock, add, ends, aborted, counts } = setup()
  add('ends', 's')
  add('hangs', 's')
  ends.get('ends')?.()
  assert.equal(counts.open, 1)
  await clock.advance(300_000)
  assert.deepEqual(aborted, ['hangs'])
  assert.deepEqual(counts, { open: 0, aborted: 0 })
})

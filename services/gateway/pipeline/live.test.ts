import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NOWHERE, poolTable, TestClock } from '@plat/core'
import { testIdentity } from '../call/testing/identity.ts'
import { createLiveCalls, type LiveCall } from './live.ts'

function callOf(agent: string, session: string, endsWork = false): LiveCall {
  const identity = { ...testIdentity, agent, session }
  return { identity, long: false, endsWork, place: NOWHERE, check() {}, stop() {} }
}

test('an agent whose sessions use up its share of live calls leaves room for others, and gets room again when its calls end', () => {
  const refused: string[] = []
  let used = () => -1
  const live = createLiveCalls(new TestClock(), {
    of: (pool) => ({
      watch(read) {
        if (pool === 'live_calls') used = read
      },
      refused: (bound) => void refused.push(bound),
    }),
  })
  const calls = Array.from({ length: poolTable.live_calls.shares[0].max }, (_, n) => callOf('greedy', `s${n}`))
  assert.ok(calls.every((call) => live.add(call)))
  const late = callOf('greedy', 'late')
  assert.equal(live.add(late), false)
  assert.equal(live.add(callOf('modest', 's')), true)
  assert.deepEqual([refused, used()], [['share'], poolTable.live_calls.shares[0].max + 1])
  assert.equal(live.add(callOf('greedy', 's0', true)), true, 'calls that end work have a separate pool')
  // A refused call is removed at its end like any other, which releases nothing.
  live.remove(late)
  assert.equal(live.add(late), false)
  const [first] = calls
  assert.ok(first !== undefined)
  live.remove(first)
  live.remove(first)
  assert.equal(live.add(late), true)
  assert.equal(live.add(first), false)
  live.close()
})

test('an agent at its share of requests that end work is refused while another is served', () => {
  const live = createLiveCalls(new TestClock())
  for (let n = 0; n < poolTable.ending_calls.shares[0].max; n++) assert.ok(live.add(callOf('greedy', `s${n}`, true)))
  assert.equal(live.add(callOf('greedy', 'late', true)), false)
  assert.equal(live.add(callOf('modest', 's', true)), true)
  live.close()
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { silentLog } from '@plat/process'
import { RefusedTokens } from './refused.ts'

test('a peer that guesses waits longer each time and holds few places, while another peer is answered at once', async () => {
  const clock = new TestClock()
  const reasons: string[] = []
  const refusals = new RefusedTokens({ clock, log: silentLog, refused: (reason) => void reasons.push(reason) })
  for (let count = 0; count < 5; count++) await refusals.refuse('10.0.0.1', 'invalid')
  const waits: number[] = []
  const begun = clock.now()
  const waiting = Array.from({ length: 8 }, () =>
    refusals.refuse('10.0.0.1', 'invalid').then(() => void waits.push(clock.now() - begun)),
  )
  assert.equal(refusals.isThrottled('10.0.0.1'), true)
  assert.equal(refusals.isThrottled('10.0.0.2'), false)
  await refusals.refuse('10.0.0.2', 'invalid')
  for (let step = 0; step < 40; step++) await clock.advance(100)
  await Promise.all(waiting)
  assert.deepEqual(waits, [100, 200, 400, 800, 1600, 3000, 3000, 3000])
  assert.equal(refusals.isThrottled('10.0.0.1'), false, 'the places are free again')
  assert.equal(reasons.filter((reason) => reason === 'throttled').length, 1)
  await clock.advance(60_000)
  await refusals.refuse('10.0.0.1', 'invalid')
})

test('addresses of one /64 are one peer', async () => {
  const clock = new TestClock()
  const refusals = new RefusedTokens({ clock, log: silentLog, refused: () => {} })
  const guess = (n: number) => refusals.refuse(`2001:db8:1:2::${n.toString(16)}`, 'invalid')
  for (let n = 1; n <= 5; n++) await guess(n)
  const waiting = Array.from({ length: 8 }, (_, n) => guess(6 + n))
  assert.equal(refusals.isThrottled('2001:db8:1:2:ffff::1'), true)
  assert.equal(refusals.isThrottled('2001:db8:1:3::1'), false)
  for (let step = 0; step < 40; step++) await clock.advance(100)
  await Promise.all(waiting)
})

test('requests without a token are counted and never wait', async () => {
  const refusals = new RefusedTokens({ clock: new TestClock(), log: silentLog, refused: () => {} })
  for (let count = 0; count < 50; count++) await refusals.refuse('10.0.0.1', 'missing')
  assert.equal(refusals.isThrottled('10.0.0.1'), false)
})

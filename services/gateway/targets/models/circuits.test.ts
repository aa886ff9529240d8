import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { Circuits } from './circuits.ts'

const one = { key: 'a', route: 'r', label: 'http://a.example' }
const other = { key: 'b', route: 'r', label: 'http://b.example' }

function circuits() {
  const clock = new TestClock()
  const open: number[] = []
  const failed: string[] = []
  const made = new Circuits({
    clock,
    failureThreshold: 3,
    cooldownMs: 30_000,
    open: (count) => void open.push(count),
    failed: (route, endpoint) => void failed.push(`${route} ${endpoint}`),
  })
  return { clock, made, open, failed }
}

test('consecutive failures open a circuit, and a success resets the count', () => {
  // Shows D3.modelRouting.failureThreshold
  const { made, open, failed } = circuits()
  made.failed(one)
  made.failed(one)
  made.succeeded(one)
  made.failed(one)
  made.failed(one)
  assert.equal(made.isOpen(one), false)
  made.failed(one)
  assert.deepEqual([made.isOpen(one), made.isOpen(other), open.at(-1)], [true, false, 1])
  assert.deepEqual(failed, Array(5).fill('r http://a.example'))
})

test('after the cooldown one call may try the endpoint, and its success closes the circuit', async () => {
  // Shows D3.modelRouting.cooldownSeconds
  const { clock, made, open } = circuits()
  for (let count = 0; count < 3; count++) made.failed(one)
  await clock.advance(29_999)
  assert.equal(made.isOpen(one), true)
  await clock.advance(1)
  assert.equal(made.isOpen(one), false)
  made.enter(one)
  assert.equal(made.isOpen(one), true, 'the second call skips the endpoint while the first one tries')
  made.failed(one)
  await clock.advance(29_999)
  assert.equal(made.isOpen(one), true)
  await clock.advance(1)
  made.enter(one)
  assert.equal(open.at(-1), 1)
  made.succeeded(one)
  assert.deepEqual([made.isOpen(one), open.at(-1)], [false, 0])
})

test('calls at an open circuit do not delay its next trial', async () => {
  const { clock, made } = circuits()
  for (let count = 0; count < 3; count++) made.failed(one)
  await clock.advance(20_000)
  made.enter(one)
  made.failed(one)
  await clock.advance(10_000)
  assert.equal(made.isOpen(one), false)
})

test('a successful probe lets the next call try at once, and resets no count', () => {
  const { made } = circuits()
  for (let count = 0; count < 3; count++) made.failed(one)
  made.lives(one)
  assert.equal(made.isOpen(one), false)
  made.enter(one)
  made.failed(one)
  assert.equal(made.isOpen(one), true)
  made.lives(other)
  assert.equal(made.isOpen(other), false)
})

test('a removed endpoint is forgotten', () => {
  const { made, open } = circuits()
  for (let count = 0; count < 3; count++) {
    made.failed(one)
    made.failed(other)
  }
  assert.equal(open.at(-1), 2)
  made.keep(new Set(['b']))
  assert.deepEqual([made.isOpen(one), made.isOpen(other), open.at(-1)], [false, true, 1])
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NOWHERE } from '@plat/core'
import { OpenIntents } from './open-intents.ts'

const intent = { kind: 'intent', call: 'c' } as const
const outcome = { kind: 'outcome', call: 'c' } as const

function newIntent() {
  return { seq: -1, place: NOWHERE }
}

test('an intent is open until its outcome, whether both records have its object or only the call', () => {
  const intents = new OpenIntents(new Map([['earlier', 2]]))
  const [first, second] = [newIntent(), newIntent()]
  intents.placed(intent, 9, second)
  intents.placed(intent, 7, first)
  intents.placed({ kind: 'intent', call: 'plain' }, 5, undefined)
  intents.placed({ kind: 'message', call: 'c' }, 10, first)
  assert.deepEqual([intents.seqs(), intents.size], [[2, 5, 7, 9], 4])
  assert.equal(intents.placed(outcome, 11, first), 7)
  assert.equal(intents.placed({ kind: 'outcome', call: 'plain' }, 12, undefined), 5)
  assert.equal(intents.placed({ kind: 'outcome', call: 'earlier' }, 13, undefined), 2)
  assert.deepEqual(intents.seqs(), [9])
  // No second outcome closes anything, nor one of a call whose intent was refused.
  assert.equal(intents.placed(outcome, 14, first), -1)
  assert.equal(intents.placed(outcome, 15, newIntent()), -1)
  assert.deepEqual(intents.seqs(), [9])
})

test('an outcome that is lost leaves its durable intent open, and closes one that is lost with it', () => {
  for (const object of [newIntent(), undefined]) {
    const intents = new OpenIntents(new Map())
    intents.placed(intent, 3, object)
    const closed = intents.placed(outcome, 4, object)
    intents.failed(outcome, object, closed, 3)
    assert.deepEqual(intents.seqs(), [3])
    assert.equal(intents.placed(outcome, 4, object), 3)
    intents.failed(intent, object, -1, 2)
    intents.failed(outcome, object, 3, 2)
    assert.deepEqual(intents.seqs(), [])
  }
})

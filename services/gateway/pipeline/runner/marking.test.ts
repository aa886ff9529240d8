import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Frame } from '../../call/index.ts'
import type { Marking, RunningReview } from '../stage.ts'
import { frame, setUp } from './testing/fixture.ts'

/** A review that marks, and writes down what reached the caller when it was told that all of it did. */
function marking(sent: () => void | Promise<void>) {
  const cleared: string[] = []
  const marks = { added: ['web'], cleared, sent } satisfies Marking
  const running: RunningReview = { marking: marks, frame: (one: Frame) => [one], end: () => [] }
  return { marks, review: { name: 'mark', needs: [], open: () => running } as const }
}

test('what a reply adds and clears is recorded, and it clears after all of it was written', async () => {
  let seen: readonly string[] = []
  const { marks, review } = marking(async () => {
    seen = [...call.wire]
    await Promise.resolve()
    marks.cleared.push('mail')
  })
  const call = setUp({ reviews: [review] })
  await call.done
  assert.equal(seen.at(-1), call.wire.at(-1))
  assert.match(seen.at(-1) ?? '', /^200 /)
  const outcome = call.records.find(({ kind }) => kind === 'outcome')
  assert.deepEqual([outcome?.taintsAdded, outcome?.taintsCleared], [['web'], ['mail']])
})

test('a reply that was not written to its end clears nothing, and what it added is recorded', async () => {
  let told = 0
  const { review } = marking(() => void told++)
  const denying = {
    name: 'mark',
    needs: [],
    open: () => ({ frame: () => assert.fail('a review that breaks'), end: () => [] }),
  } as const
  const call = setUp({ reviews: [review, denying], batches: [[frame('final', '{}')]] })
  await call.done
  assert.equal(told, 0)
  const outcome = call.records.find(({ kind }) => kind === 'outcome')
  assert.deepEqual([outcome?.taintsAdded, outcome?.taintsCleared], [['web'], undefined])
})

test('marks that cannot be cleared do not keep the call from being recorded', async () => {
  const failing = [() => Promise.reject(new Error('the disk is full')), () => assert.fail('broken')]
  for (const sent of failing) {
    const call = setUp({ reviews: [marking(sent).review] })
    await call.done
    assert.equal(call.records.filter(({ kind }) => kind === 'outcome').length, 1)
    assert.match(call.logged.join('\n'), /marking the session failed/)
  }
})

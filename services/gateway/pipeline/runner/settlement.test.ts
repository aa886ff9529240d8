import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Frame } from '../../call/index.ts'
import type { Marking, RunningReview } from '../stage.ts'
import { frame, setUp } from './testing/fixture.ts'

/** A review with a marking that calls `sent` when the whole response was written. */
function marking(sent: () => void | Promise<void>) {
  const cleared: string[] = []
  const marks = { added: ['web'], cleared, sent } satisfies Marking
  const running: RunningReview = { marking: marks, frame: (one: Frame) => [one], end: () => [] }
  return { marks, review: { name: 'mark', needs: [], open: () => running } as const }
}

test('labels added and cleared are recorded, and labels are cleared after the whole reply was written', async () => {
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

test('an incomplete reply clears no labels, and the labels that it added are recorded', async () => {
  let sent = 0
  const { review } = marking(() => void sent++)
  const denying = {
    name: 'mark',
    needs: [],
    open: () => ({ frame: () => assert.fail('a review that breaks'), end: () => [] }),
  } as const
  const call = setUp({ reviews: [review, denying], batches: [[frame('final', '{}')]] })
  await call.done
  assert.equal(sent, 0)
  const outcome = call.records.find(({ kind }) => kind === 'outcome')
  assert.deepEqual([outcome?.taintsAdded, outcome?.taintsCleared], [['web'], undefined])
})

test('a failure to clear labels does not prevent the record of the call', async () => {
  const failing = [() => Promise.reject(new Error('the disk is full')), () => assert.fail('broken')]
  for (const sent of failing) {
    const call = setUp({ reviews: [marking(sent).review] })
    await call.done
    assert.equal(call.records.filter(({ kind }) => kind === 'outcome').length, 1)
    assert.match(call.logged.join('\n'), /marking the session failed/)
  }
})

test('a stage that admits a call after its caller left settles once, whether the call has ended or not', async () => {
  for (const hasEnded of [false, true]) {
    const verdict = Promise.withResolvers<unknown>()
    const settled: string[] = []
    const call = setUp({ approval: () => verdict.promise, settled: (result) => void settled.push(result) })
    await new Promise((resolve) => setImmediate(resolve))
    call.abort.stop('client', null)
    if (hasEnded) await call.done
    verdict.resolve({ approval: null })
    await call.done
    await verdict.promise
    assert.deepEqual(settled, ['cancelled'])
  }
})

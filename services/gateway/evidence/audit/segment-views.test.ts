import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { LedgerSequence, ListKeeper, leave } from '@plat/ledger'
import { tempFolder } from '@plat/testkit/local'
import { writeSegments } from '@plat/testkit/segments'
import { segmentViews } from './segment-views.ts'

test('pages of segments continue from those that are here to those that left, the newest first, each once', async () => {
  const { path } = await writeSegments(join(tempFolder(), 'audit.jsonl'), { segments: 7, records: 5 })
  const list = new ListKeeper(path, null, {})
  await list.update()
  await using sequence = await LedgerSequence.open(path)
  // The second one leaves after the third, as one that was held, and the sixth stays.
  for (const index of [0, 2, 1, 4]) {
    const segment = sequence.segments[index]
    assert.ok(segment !== undefined)
    const place = {
      archive: index === 2 ? null : `s3://bucket/${index}`,
      checkpoint: '{}',
      left: '2026-02-01T00:00:00Z',
    }
    await leave({ ledgerPath: path, list, files: null }, segment, place)
  }
  const firsts = sequence.segments.map(({ first }) => first).reverse()
  for (const limit of [1, 2, 3, 7, 100]) {
    const found: number[] = []
    let before: { before?: number } = {}
    for (let pages = 0; pages <= firsts.length; pages++) {
      const { items, nextCursor } = await segmentViews(path, { ...before, limit, problemOf: () => null })
      found.push(...items.map(({ first }) => first))
      assert.ok(items.length <= limit)
      if (nextCursor === null) break
      before = { before: Number(nextCursor) }
    }
    assert.deepEqual(found, firsts, `pages of ${limit}`)
  }
  const { items } = await segmentViews(path, { limit: 100, problemOf: () => undefined })
  const states = items.map(({ isHere, isArchived, isSigned, left, state }) => [
    isHere,
    isArchived,
    isSigned,
    left !== null,
    state,
  ])
  const here = [true, false, false, false, 'unverified']
  const archived = [false, true, true, true, 'unverified']
  const deleted = [false, false, true, true, 'unverified']
  assert.deepEqual(states, [here, here, archived, here, deleted, archived, archived])
})

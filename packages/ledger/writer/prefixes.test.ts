import assert from 'node:assert/strict'
import { test } from 'node:test'
import { everyPrefix } from '@plat/testkit/faults/prefixes'
import { tempFolder } from '@plat/testkit/local'

test('every prefix of a trace of 500 system calls opens to a chain with all acknowledged records', async () => {
  const { states, sealed } = await everyPrefix({
    path: `${tempFolder()}/audit.jsonl`,
    calls: 500,
    segmentBytes: 1200,
  })
  assert.ok(states > 50 && sealed > 3, `${states} states, ${sealed} segments`)
})

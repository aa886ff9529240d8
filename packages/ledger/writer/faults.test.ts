import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ledgerFaults } from '@plat/testkit/faults/matrix'
import { tempFolder } from '@plat/testkit/local'

test('under every failing system call of sealing as well', async () => {
  const { runs } = await ledgerFaults({
    path: `${tempFolder()}/audit.jsonl`,
    lengths: [1],
    rounds: 1,
    segmentBytes: 300,
    step: 7,
  })
  assert.ok(runs > 50, `${runs} runs`)
})

test('under every failing system call the ledger loses nothing acknowledged, uses no foreign descriptor, and recovers', async () => {
  await ledgerFaults({ path: `${tempFolder()}/audit.jsonl`, lengths: [1, 4], rounds: 3 })
})

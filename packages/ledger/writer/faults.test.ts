import { test } from 'node:test'
import { ledgerFaults } from '@plat/testkit/faults/matrix'
import { tempFolder } from '@plat/testkit/local'

test('under every failing system call the ledger loses nothing acknowledged, uses no foreign descriptor, and recovers', async () => {
  await ledgerFaults({ path: `${tempFolder()}/audit.jsonl`, lengths: [1, 4], rounds: 3 })
})

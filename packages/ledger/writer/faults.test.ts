import { test } from 'node:test'
import { ledgerFaults } from '@plat/testkit/faults/matrix'
import { tempFolder } from '@plat/testkit/local'

test('whatever system call of the ledger fails, nothing acknowledged is lost, no foreign descriptor is used, and it works again by itself', async () => {
  await ledgerFaults({ path: `${tempFolder()}/audit.jsonl`, lengths: [1, 4], rounds: 3 })
})

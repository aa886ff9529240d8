import { test } from 'node:test'
import { journalFaults } from '@plat/testkit/faults/matrix'
import { tempFolder } from '@plat/testkit/local'

test('under every failing system call a journal loses nothing acknowledged, uses no foreign descriptor, and recovers', async () => {
  await journalFaults({ path: `${tempFolder()}/journal.jsonl`, lengths: [1, 4], rounds: 2 })
})

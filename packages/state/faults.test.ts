import { test } from 'node:test'
import { journalFaults } from '@plat/testkit/faults/matrix'
import { tempFolder } from '@plat/testkit/local'

test('whatever system call of a journal fails, nothing acknowledged is lost, no foreign descriptor is used, and it works again by itself', async () => {
  await journalFaults({ path: `${tempFolder()}/journal.jsonl`, lengths: [1, 4], rounds: 2 })
})

import assert from 'node:assert/strict'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { MemoryDisk } from '@plat/testkit/disk'
import { tempFolder } from '@plat/testkit/local'
import { appendSlowly, openSealing } from '@plat/testkit/sealed'
import { ArchivedError, LedgerSequence, ListKeeper, leave, removeLeftovers } from '../index.ts'
import { sourceFilesOver } from '../sequence/files.ts'

test('with EIO, ENOSPC or a power cut at each operation, a segment is here or listed as left, and the next pass completes it', async () => {
  const path = join(tempFolder(), 'audit.jsonl')
  const disk = new MemoryDisk()
  const ledger = await openSealing({ path, files: disk })
  await appendSlowly(ledger, 60)
  await ledger.close()
  const sealed = disk.afterPowerCut()
  const departure = { archive: 'there', checkpoint: '{}', left: '2100-01-01T00:00:00Z' }
  const state = async (files: MemoryDisk) => {
    await using sequence = await LedgerSequence.open(path, sourceFilesOver(files))
    const first = await sequence.segmentOf(0)
    const line = await sequence.lineOf(1).catch((error: Error) => error)
    if (line instanceof ArchivedError) {
      assert.deepEqual([first?.archive, first?.checkpoint, first?.left], Object.values(departure))
      return 'left'
    }
    assert.ok(line !== null && !(line instanceof Error), String(line))
    return first?.left === null ? 'here' : 'leaving'
  }
  const seen = new Set<string>()
  for (const kind of ['EIO', 'ENOSPC'] as const) {
    for (let at = 0; ; at++) {
      const files = new MemoryDisk(sealed, [{ at, kind }])
      const leaving = { ledgerPath: path, list: new ListKeeper(path, files, {}), files }
      await using sequence = await LedgerSequence.open(path, sourceFilesOver(files))
      const [segment] = sequence.segments
      assert.ok(segment !== undefined)
      const failed = await leave(leaving, segment, departure)
        .then(() => null)
        .catch((error: Error) => error)
      if (failed !== null) assert.match(failed.message, /^(?:EIO|ENOSPC)/)
      const after = await state(files)
      seen.add(after)
      assert.ok(failed !== null || after === 'left')
      for (const crashed of [new MemoryDisk(files.afterPowerCut()), files]) {
        await state(crashed)
        const again = { ledgerPath: path, list: new ListKeeper(path, crashed, {}), files: crashed }
        await using before = await LedgerSequence.open(path, sourceFilesOver(crashed))
        await removeLeftovers(again, before.segments)
        if ((await state(crashed)) === 'here') await leave(again, segment, departure)
        assert.equal(await state(crashed), 'left')
        assert.ok(!crashed.list(dirname(path)).includes(segment.file ?? ''))
      }
      if (failed === null) break
    }
  }
  assert.deepEqual([...seen].sort(), ['here', 'leaving', 'left'])
})

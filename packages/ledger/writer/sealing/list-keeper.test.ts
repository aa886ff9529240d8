import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { MemoryDisk } from '@plat/testkit/disk'
import { tempFolder } from '@plat/testkit/local'
import { appendSlowly, openSealing } from '@plat/testkit/sealed'
import { writeSegments } from '@plat/testkit/segments'
import { LedgerSequence, segmentsPath } from '../../index.ts'
import { sourceFilesOver } from '../../sequence/files.ts'
import { ListKeeper } from './list-keeper.ts'

const path = join(tempFolder(), 'audit.jsonl')

/** A ledger with sealed segments and no list of them. */
async function withoutList(): Promise<MemoryDisk> {
  const disk = new MemoryDisk()
  const ledger = await openSealing({ path, files: disk })
  await appendSlowly(ledger, 60)
  await ledger.close()
  disk.remove(segmentsPath(path))
  return disk
}

async function isListed(disk: MemoryDisk): Promise<boolean> {
  await using sequence = await LedgerSequence.open(path, sourceFilesOver(disk))
  assert.ok(sequence.segments.length > 1)
  return sequence.isListed
}

test('a list that could not be written is written by itself later, unless the keeper is closed', async () => {
  for (const kind of ['EIO', 'ENOSPC'] as const) {
    const whole = (await withoutList()).afterPowerCut()
    for (let at = 0; ; at++) {
      const disk = new MemoryDisk(whole, [{ at, kind }])
      const clock = new TestClock()
      const faults: string[] = []
      const list = new ListKeeper(path, disk, { clock, onFault: (reason) => faults.push(reason) })
      await list.update()
      if (faults.length === 0) break
      await clock.advance(60_000)
      assert.equal(faults.length, 1, `${kind} at operation ${at}`)
      assert.ok(await isListed(disk), `${kind} at operation ${at}`)
    }
  }
  const disk = new MemoryDisk((await withoutList()).afterPowerCut(), [{ at: 0, kind: 'EIO' }])
  const clock = new TestClock()
  const list = new ListKeeper(path, disk, { clock })
  await list.update()
  list.close()
  await clock.advance(60_000)
  assert.equal(await isListed(disk), false)
})

test('a start writes a list that is missing, so that no reader has to look into each file', async () => {
  const disk = await withoutList()
  assert.equal(await isListed(disk), false)
  const ledger = await openSealing({ path, files: disk })
  assert.ok(await isListed(disk))
  await ledger.close()
})

test('a list that names another file than that of a sealed segment is refused', async () => {
  const { path: ledger } = await writeSegments(join(tempFolder(), 'audit.jsonl'), { segments: 2, records: 5 })
  const list = JSON.parse(readFileSync(segmentsPath(ledger), 'utf8'))
  const [first, second] = [list.segments[0].file, list.segments[1].file]
  for (const file of ['..', '.', '', 'audit.jsonl', '../x.jsonl', '/etc/passwd', second, `${first}.gz`]) {
    list.segments[0].file = file
    writeFileSync(segmentsPath(ledger), JSON.stringify(list))
    await assert.rejects(LedgerSequence.open(ledger), /segments\.json is malformed: restore it from a copy/, file)
  }
  for (const file of [first, `${first}.zst`, null]) {
    list.segments[0].file = file
    writeFileSync(segmentsPath(ledger), JSON.stringify(list))
    await (await LedgerSequence.open(ledger)).close()
  }
})

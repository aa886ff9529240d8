import assert from 'node:assert/strict'
import { copyFileSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { lockPath, systemFiles } from '@plat/state'
import { tempFolder } from '@plat/testkit/local'
import { lineOf, writeSegments } from '@plat/testkit/segments'
import { LedgerSequence, RestoreError, restoreSegment, segmentsPath, verifyLedger } from '../index.ts'
import { compressSegment } from '../retention/compress.ts'

/** Three sealed segments, of which the second has a copy elsewhere. */
async function ledger() {
  const { path, files } = await writeSegments(join(tempFolder(), 'audit.jsonl'), { segments: 3, records: 12 })
  const file = files[1]?.path ?? ''
  const copy = join(tempFolder(), 'copy.jsonl')
  copyFileSync(file, copy)
  const names = () => readdirSync(dirname(path)).sort()
  return { path, file, copy, names, exitCode: async () => (await verifyLedger(path, { strict: true })).exitCode }
}

function damage(file: string, at: number): Buffer {
  const bytes = readFileSync(file)
  bytes.write('#', at < 0 ? bytes.length + at : at)
  writeFileSync(file, bytes)
  return bytes
}

async function compress(path: string): Promise<void> {
  await using sequence = await LedgerSequence.open(path)
  const [before = null, segment] = sequence.segments
  assert.ok(segment !== undefined)
  await compressSegment({ ledgerPath: path, segment, before, files: systemFiles })
}

test('a sealed segment that is damaged at any place, or missing, is replaced by a copy, and the damaged file is kept', async () => {
  for (const at of [0, 100, 2000, -1, -30, -200]) {
    const { path, file, copy, exitCode } = await ledger()
    const damaged = damage(file, at)
    assert.equal(await exitCode(), 3, `byte ${at}`)
    const restored = await restoreSegment(path, copy)
    assert.deepEqual([restored.first, restored.path, restored.wasValid], [13, file, false])
    assert.deepEqual(readFileSync(restored.aside ?? ''), damaged)
    assert.deepEqual(readFileSync(file), readFileSync(copy))
    assert.equal(await exitCode(), 0)
  }
  const { path, file, copy, exitCode } = await ledger()
  rmSync(file)
  assert.equal((await restoreSegment(path, copy)).aside, null)
  assert.equal(await exitCode(), 0)
})

test('a copy that is not what was sealed changes nothing, nor does one of a valid segment', async () => {
  const { path, file, copy, names } = await ledger()
  assert.equal((await restoreSegment(path, copy)).wasValid, true)
  const damaged = damage(file, 300)
  const before = names()
  const good = readFileSync(copy)
  const wrong: [content: Buffer | string, why: RegExp][] = [
    [damaged, /is not what was sealed: line 1 \(record 13/],
    [good.subarray(0, -1), /bytes instead of/],
    [Buffer.concat([good, Buffer.from('\n')]), /bytes instead of/],
    [`${lineOf('0'.repeat(64), { kind: 'admin', at: '' }, 13).text}\n`, /bytes instead of/],
    [`${lineOf('0'.repeat(64), { kind: 'admin', at: '' }, 5).text}\n`, /no sealed segment of .* begins with record 5/],
    ['no ledger', /does not begin with a record/],
  ]
  for (const [content, why] of wrong) {
    writeFileSync(copy, content)
    await assert.rejects(
      restoreSegment(path, copy),
      (error) => error instanceof RestoreError && why.test(error.message),
    )
    assert.deepEqual(readFileSync(file), damaged)
    assert.deepEqual(
      names().filter((name) => name !== 'audit.jsonl.lock'),
      before.filter((name) => name !== 'audit.jsonl.lock'),
    )
  }
  await assert.rejects(restoreSegment(path, join(path, 'missing')), /does not exist|ENOTDIR/)
})

test('a list that states another segment record than the next file follows is not believed', async () => {
  const { path, file, copy } = await ledger()
  damage(file, 300)
  const list = JSON.parse(readFileSync(segmentsPath(path), 'utf8'))
  list.segments[1].record = list.segments[2].record
  writeFileSync(segmentsPath(path), JSON.stringify(list))
  await assert.rejects(restoreSegment(path, copy), /does not follow the segment record/)
})

test('nothing is restored while a gateway writes the ledger, or over the evidence of an earlier repair', async () => {
  const { path, file, copy } = await ledger()
  damage(file, 300)
  const unlock = lockPath(path)
  await assert.rejects(restoreSegment(path, copy), /in use by another process/)
  unlock()
  writeFileSync(`${file}.damaged`, 'before')
  await assert.rejects(restoreSegment(path, copy), /is from an earlier repair/)
  assert.equal(readFileSync(`${file}.damaged`, 'utf8'), 'before')
  assert.ok(!existsSync(`${file}.restoring`))
})

test('a repair that ended between its two renames is completed by the next one', async () => {
  const { path, file, copy, exitCode, names } = await ledger()
  const damaged = damage(file, 300)
  renameSync(file, `${file}.damaged`)
  copyFileSync(copy, `${file}.restoring`)
  const restored = await restoreSegment(path, copy)
  assert.deepEqual([restored.path, restored.aside], [file, `${file}.damaged`])
  assert.deepEqual(readFileSync(`${file}.damaged`), damaged)
  assert.ok(!names().some((name) => name.endsWith('.restoring')))
  assert.equal(await exitCode(), 0)
})

test('plain and compressed copies restore each other', async () => {
  const { path, file, copy, exitCode } = await ledger()
  await compress(path)
  const compressed = `${copy}.zst`
  copyFileSync(`${file}.zst`, compressed)
  damage(`${file}.zst`, 60)
  assert.deepEqual((await restoreSegment(path, copy)).path, file)
  assert.equal(await exitCode(), 0)
  damage(file, 300)
  assert.deepEqual((await restoreSegment(path, compressed)).path, `${file}.zst`)
  assert.equal(await exitCode(), 0)
})

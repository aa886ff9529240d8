import assert from 'node:assert/strict'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { systemIds, TestClock } from '@plat/core'
import { MemoryDisk } from '@plat/testkit/disk'
import { tempFolder } from '@plat/testkit/local'
import {
  LedgerDamagedError,
  LedgerSequence,
  type OpenLedgerOptions,
  openLedger,
  SegmentListError,
  segmentsPath,
} from '../index.ts'
import { type SourceFiles, sourceFilesOver } from '../sequence/files.ts'
import { verifySegment } from '../sequence/verify-segment.ts'
import { writeHead } from './head-file.ts'

const path = join(tempFolder(), 'audit.jsonl')
let sealed = new Map<string, Buffer>()
let hashes: string[] = []
let active = 0

function options(files: MemoryDisk, more: Partial<OpenLedgerOptions> = {}): OpenLedgerOptions {
  const clock = new TestClock()
  return {
    path,
    tenant: '',
    replica: 'r1',
    clock,
    ids: systemIds(clock),
    files,
    sealing: { bytes: 1500, seconds: 0 },
    ...more,
  }
}

before(async () => {
  const disk = new MemoryDisk()
  const ledger = await openLedger(options(disk))
  await ledger.append({ kind: 'intent', call: 'c-open', tool: 'x' })
  for (let count = 0; count < 40; count++) {
    await ledger.append({ kind: 'admin', tool: `t${count}` })
    for (let turn = 0; turn < 4; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
  // The active file is not empty.
  await ledger.append({ kind: 'admin', tool: 'last' })
  sealed = disk.afterPowerCut()
  await ledger.close()
  await using sequence = await LedgerSequence.open(path, sourceFilesOver(new MemoryDisk(sealed)))
  active = sequence.parts.at(-1)?.first ?? 0
  assert.ok(sequence.segments.length >= 3)
  hashes = (await read(new MemoryDisk(sealed), undefined)).map(({ hash }) => hash)
})

async function read(disk: MemoryDisk, since: OpenLedgerOptions['since'], more: Partial<OpenLedgerOptions> = {}) {
  const seen: { seq: number; hash: string; rec: string }[] = []
  const onRecord: OpenLedgerOptions['onRecord'] = (record, { seq, hash }) =>
    void seen.push({ seq, hash, rec: record.toString() })
  await (await openLedger(options(disk, { onRecord, ...(since !== undefined && { since }), ...more }))).close()
  return seen
}

test('a start reads from the given record on, and the active file alone when that is enough', async () => {
  assert.equal((await read(new MemoryDisk(sealed), 'active'))[0]?.seq, active)
  for (const seq of [0, 1, 7, active - 1, active, hashes.length - 2]) {
    const seen = await read(new MemoryDisk(sealed), { seq, hash: hashes[seq] ?? '' })
    const first = Math.min(seq, active)
    assert.deepEqual(seen.map((one) => one.hash).slice(0, 3), hashes.slice(first, first + 3))
  }
})

test('a reader that comes to a missing segment says so and leaves no file open', async () => {
  const disk = new MemoryDisk(sealed)
  const source = sourceFilesOver(disk)
  let open = 0
  const counted: SourceFiles = {
    ...source,
    async open(file) {
      const opened = await source.open(file)
      if (opened === null) return null
      open++
      return { ...opened, close: () => void open-- }
    },
  }
  const sequence = await LedgerSequence.open(path, counted)
  const missing = sequence.parts[1]
  assert.ok(missing !== undefined)
  disk.rename(missing.path, `${missing.path}.away`)
  const all = Buffer.alloc(await sequence.size())
  for (let attempt = 0; attempt < 3; attempt++)
    await assert.rejects(sequence.read(all, 0), /is missing: restore it from a copy with `plat audit repair/)
  await sequence.close()
  assert.equal(open, 0)
})

test('a record that the ledger does not hold is refused: reading begins with the active file', async () => {
  for (const since of [
    { seq: 3, hash: 'other' },
    { seq: 100_000, hash: hashes[3] ?? '' },
  ]) {
    assert.equal((await read(new MemoryDisk(sealed), since))[0]?.seq, active)
  }
})

test('a call that is open in a sealed segment is closed by a start that does not read it', async () => {
  const disk = new MemoryDisk(sealed)
  await read(disk, 'active')
  const outcomes = (await read(disk, undefined)).filter(({ rec }) => rec.includes('"kind":"outcome"'))
  assert.deepEqual(
    outcomes.map(({ rec }) => JSON.parse(rec)).map(({ call, result, tool }) => [call, result, tool]),
    [['c-open', 'unknown', 'x']],
  )
})

test('a head in a sealed segment is looked up', async () => {
  const genesis = (await read(new MemoryDisk(sealed), undefined))[0]?.rec ?? '{}'
  const { ledgerId } = JSON.parse(genesis)
  for (const [hash, isHeld] of [
    [hashes[5] ?? '', true],
    ['0'.repeat(64), false],
  ] as const) {
    const text = await writeHead(ledgerId, { seq: 5, hash }, null)
    const heads = [{ place: 'elsewhere', read: async () => text, write: async () => {} }]
    const reading = read(new MemoryDisk(sealed), 'active', { heads })
    if (isHeld) await reading
    else await assert.rejects(reading, /does not hold record 5 as it was/)
  }
})

test('damage in a sealed segment is found and named by its verification, and stops only a start that reads it', async () => {
  const name = [...sealed.keys()].find((one) => one.endsWith(`${'0'.repeat(20)}.jsonl`)) ?? ''
  const good = sealed.get(name) ?? Buffer.alloc(0)
  const lines = good.toString().split('\n')
  const forged = Buffer.from(good.toString().replace('"tool":"x"', '"tool":"y"'))
  const swapped = Buffer.from(lines.toSpliced(2, 2, lines[3] ?? '', lines[2] ?? '').join('\n'))
  for (const bytes of [forged, swapped]) {
    const damaged = () => new MemoryDisk(new Map(sealed).set(name, bytes))
    await assert.rejects(
      read(damaged(), undefined),
      (error) => error instanceof LedgerDamagedError && /sealed segment/.test(error.message),
    )
    assert.equal((await read(damaged(), 'active'))[0]?.seq, active)
    const problems = await verified(damaged())
    assert.match(problems[0] ?? '', /line [23] \(record [12],/)
    assert.deepEqual(
      problems.slice(1).filter((one) => one !== null),
      [],
    )
  }
  assert.deepEqual(new Set(await verified(new MemoryDisk(sealed))), new Set([null]))
})

async function verified(disk: MemoryDisk): Promise<(string | null)[]> {
  await using sequence = await LedgerSequence.open(path, sourceFilesOver(disk))
  const problems: (string | null)[] = []
  for (const [index, part] of sequence.parts.entries()) {
    if (part.segment === null) continue
    problems.push(await verifySegment(sequence.sourceOf(part), part.segment, sequence.segments[index - 1] ?? null))
  }
  return problems
}

test('a list that states another record for a segment, or is malformed, is refused by name', async () => {
  const list = segmentsPath(path)
  const text = sealed.get(list)?.toString() ?? ''
  assert.ok(text.includes('"kind'))
  const other = text.replace(/(.*)\\"head\\":\\"./s, '$1\\"head\\":\\"_')
  assert.notEqual(other, text)
  for (const changed of [other, text.slice(0, -5), '[]']) {
    const disk = new MemoryDisk(new Map(sealed).set(list, Buffer.from(changed)))
    await assert.rejects(read(disk, 'active'), SegmentListError)
  }
})

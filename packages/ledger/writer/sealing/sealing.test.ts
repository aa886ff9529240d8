import assert from 'node:assert/strict'
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemIds, TestClock } from '@plat/core'
import { type DiskEvent, type DiskFault, MemoryDisk } from '@plat/testkit/disk'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import {
  type FileLedger,
  LedgerReader,
  LedgerSequence,
  ledgerPage,
  openCallsOf,
  openLedger,
  readSegmentLine,
  segmentsPath,
  tailLedger,
  verifyLedger,
} from '../../index.ts'
import { sourceFilesOver } from '../../sequence/files.ts'
import { MAX_OPEN_CALLS_NAMED } from '../../sequence/segment-record.ts'
import { lineOf } from '../../testing/line.ts'

const path = join(tempFolder(), 'audit.jsonl')

function options(files: MemoryDisk | undefined, more: { bytes?: number; seconds?: number; path?: string } = {}) {
  const clock = new TestClock()
  const { bytes = 1500, seconds = 0 } = more
  const faults: string[] = []
  const sealing = { bytes, seconds, onFault: (reason: string) => void faults.push(reason) }
  const place = { path: more.path ?? path, tenant: '', replica: 'r1', clock, ids: systemIds(clock), sealing }
  return { ...place, faults, ...(files !== undefined && { files }) }
}

async function turns(count = 20): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve))
}

type Head = { readonly seq: number; readonly hash: string }

async function fill(ledger: FileLedger, rounds: number): Promise<Head[]> {
  const heads: Head[] = []
  for (let round = 0; round < rounds; round++) {
    heads.push(await ledger.append({ kind: 'admin', tool: `t${round}` }))
    // The hash of the segment is computed in between.
    await turns(4)
  }
  return heads
}

function segmentNames(disk: MemoryDisk): string[] {
  return disk.list(join(path, '..')).filter((name) => /\.\d{20}\.jsonl$/.test(name))
}

test('a full file is sealed with a record of what it closes, and the next one continues the chain', async () => {
  const disk = new MemoryDisk()
  const { faults, ...opening } = options(disk)
  const ledger = await openLedger(opening)
  const acknowledged = await fill(ledger, 30)
  await ledger.close()
  await turns()
  assert.deepEqual(faults, [])
  assert.ok(segmentNames(disk).length >= 4, segmentNames(disk).join())
  await using sequence = await LedgerSequence.open(path, sourceFilesOver(disk))
  for (const [index, { first, last, record }] of sequence.segments.entries()) {
    assert.equal(first, (sequence.segments[index - 1]?.last ?? -1) + 1)
    const read = readSegmentLine(Buffer.from(record))
    assert.deepEqual([read?.first, read?.closed.seq, read?.place.seq, read?.open], [first, last - 1, last, []])
    assert.equal(read?.tree.size, last)
  }
  for (const { seq, hash } of acknowledged) {
    const found = await sequence.lineOf(seq)
    assert.equal(JSON.parse(found?.line.toString() ?? '').hash, hash)
  }
  assert.equal(await sequence.lineOf(acknowledged.length + 1000), null)
})

test('a file with a small limit is sealed at the record that reaches it, also one that has records at a start', async () => {
  const disk = new MemoryDisk()
  const bytes = 8192
  for (let start = 0; start < 3; start++) {
    const { faults, ...opening } = options(disk, { bytes })
    const ledger = await openLedger(opening)
    const callers = Array.from({ length: 20 }, async () => {
      for (let count = 0; count < 20; count++) await ledger.append({ kind: 'admin', tool: 't' })
    })
    await Promise.all(callers)
    await ledger.close()
    assert.deepEqual(faults, [])
  }
  await using sequence = await LedgerSequence.open(path, sourceFilesOver(disk))
  assert.ok(sequence.segments.length > 20, `${sequence.segments.length} segments`)
  for (const segment of sequence.segments) {
    const own = segment.record.length + 1
    const last = JSON.parse(segment.record).rec.last
    const line = (await sequence.lineOf(last))?.line.length ?? 0
    // Before its last two lines, the segment was smaller than the limit.
    assert.ok(segment.bytes - own >= bytes && segment.bytes - own - line - 1 < bytes, `${segment.bytes} bytes`)
  }
})

test('a file is sealed at its age, and an empty one is not', async () => {
  // Shows D3.audit.auditSegmentSeconds.
  const disk = new MemoryDisk()
  const opening = options(disk, { bytes: 1_000_000, seconds: 60 })
  const ledger = await openLedger(opening)
  await opening.clock.advance(61_000)
  await turns()
  assert.equal(segmentNames(disk).length, 1)
  await opening.clock.advance(600_000)
  await turns()
  assert.equal(segmentNames(disk).length, 1)
  await ledger.append({ kind: 'admin' })
  await opening.clock.advance(61_000)
  await turns()
  assert.equal(segmentNames(disk).length, 2)
  await ledger.close()
})

/** Content of the files after these events. */
function stateAfter(events: readonly DiskEvent[]): Map<string, Buffer> {
  const files = new Map<string, Buffer>()
  for (const event of events) {
    const old = files.get(event.path) ?? Buffer.alloc(0)
    if (event.op === 'replace') files.set(event.path, event.bytes)
    if (event.op === 'truncate') files.set(event.path, old.subarray(0, event.size))
    if (event.op === 'write') files.set(event.path, Buffer.concat([old, event.bytes]))
    if (event.op === 'rename' || event.op === 'remove') files.delete(event.path)
    if (event.op === 'rename') files.set(event.to, old)
  }
  return files
}

test('every prefix of a trace of 120 operations opens to a chain with all acknowledged records', async () => {
  const disk = new MemoryDisk()
  const ledger = await openLedger(options(disk))
  const acknowledged: (Head & { readonly after: number })[] = []
  while (disk.events.length < 120) {
    const [head] = await fill(ledger, 1)
    if (head !== undefined) acknowledged.push({ ...head, after: disk.events.length })
  }
  await ledger.close()
  await turns()
  assert.ok(segmentNames(disk).length > 5)
  for (let count = 1; count <= disk.events.length; count++) {
    const files = new MemoryDisk(stateAfter(disk.events.slice(0, count)))
    const found = new Map<number, string>()
    const onRecord = (_record: Buffer, { seq, hash }: Head) => void found.set(seq, hash)
    await (await openLedger({ ...options(files), onRecord })).close()
    for (const { seq, hash, after } of acknowledged) {
      if (after <= count) assert.equal(found.get(seq), hash, `record ${seq} is lost after ${count} operations`)
    }
  }
})

test('a call that is open when its segment is sealed is closed at the next start, once', async () => {
  const disk = new MemoryDisk()
  const ledger = await openLedger(options(disk))
  await ledger.append({ kind: 'intent', call: 'c-open', tool: 'x' })
  await Promise.all([
    ledger.append({ kind: 'intent', call: 'c-done' }),
    ledger.append({ kind: 'outcome', call: 'c-done' }),
    ledger.flush(),
  ])
  await fill(ledger, 20)
  // The process dies here.
  const crashed = new MemoryDisk(disk.afterPowerCut())
  await ledger.close()
  {
    await using sequence = await LedgerSequence.open(path, sourceFilesOver(crashed))
    const open = sequence.segments.map(({ record }) => readSegmentLine(Buffer.from(record))?.open)
    assert.ok(open.length > 1)
    for (const one of open) assert.deepEqual(one, [1])
  }
  for (let start = 0; start < 2; start++) await (await openLedger(options(crashed))).close()
  const outcomes: string[] = []
  const onRecord = (record: Buffer) => {
    const rec = JSON.parse(record.toString())
    if (rec.kind === 'outcome') outcomes.push(`${rec.call} ${rec.result}`)
  }
  await (await openLedger({ ...options(crashed), onRecord })).close()
  assert.deepEqual(outcomes.sort(), ['c-done undefined', 'c-open unknown'])
})

test('records for the next file fail with the segment record, before their numbers are used again', async () => {
  const faults: DiskFault[] = []
  const disk = new MemoryDisk(new Map(), faults)
  const opening = options(disk)
  const ledger = await openLedger(opening)
  let last: Promise<unknown> = Promise.resolve()
  for (let before = -1; ledger.placed.seq !== before + 2; ) {
    await last
    before = ledger.placed.seq
    last = ledger.append({ kind: 'admin', tool: 'x' })
  }
  faults.push({ at: disk.operations, kind: 'EIO' })
  // An outcome lingers: no write of it is under way when the other file fails.
  const lost: unknown[] = []
  const durable = () => assert.fail('it has no file')
  ledger.enter({ kind: 'outcome', call: 'c-1' }, { durable, failed: (error) => void lost.push(error) })
  await assert.rejects(last, /EIO/)
  assert.equal(lost.length, 1)
  await opening.clock.advance(60_000)
  await ledger.append({ kind: 'admin' })
  await ledger.close()
  const written = disk.events.flatMap((event) => (event.op === 'write' ? event.bytes.toString().split('\n') : []))
  const gap = written.find((line) => line.includes('"kind":"gap"'))
  assert.equal(JSON.parse(gap ?? '{}').rec?.count, 2)
})

test('a file that has the name of the next segment is never replaced', async () => {
  const disk = new MemoryDisk()
  const squatter = `${path}.${'0'.repeat(20)}.jsonl`
  const opening = options(disk)
  const ledger = await openLedger(opening)
  disk.replace(squatter, Buffer.from('other'))
  await fill(ledger, 8).catch(() => {})
  assert.equal(ledger.health, 'poisoned')
  assert.equal(Buffer.from(disk.readWhole(squatter) ?? []).toString(), 'other')
  disk.remove(squatter)
  await opening.clock.advance(60_000)
  await fill(ledger, 2)
  assert.equal(ledger.health, 'ok')
  await ledger.close()
})

test('readers see one ledger across segments that are sealed while they read, and without the list', async (t) => {
  const real = join(tempFolder(), 'audit.jsonl')
  const opening = options(undefined, { bytes: 4000, path: real })
  const alive = setInterval(() => {}, 1000)
  t.after(() => clearInterval(alive))
  const ledger = await openLedger(opening)
  const reader = await LedgerReader.open(real, null)
  const seen: number[] = []
  const sealed = () => readdirSync(join(real, '..')).filter((name) => /\.\d{20}\.jsonl$/.test(name)).length
  for (let count = 0; sealed() < 3; count++) {
    const { seq } = await ledger.append({ kind: 'admin', tool: `t${count}` })
    for (const line of await reader.next({ upTo: seq, count: 1000, bytes: 100_000 })) {
      seen.push(line.seq)
      reader.take(line)
    }
  }
  await ledger.close()
  const head = ledger.head()
  for (const line of await reader.next({ upTo: head.seq, count: 1000, bytes: 1_000_000 })) seen.push(line.seq)
  await reader.close()
  const all = Array.from({ length: head.seq + 1 }, (_, seq) => seq)
  assert.deepEqual(seen, all)
  await until(async () => (await listed(real)) === 3, 'the list of segments')
  for (const list of ['kept', 'removed']) {
    if (list === 'removed') rmSync(segmentsPath(real))
    const found = await verifyLedger(real, { strict: true, beside: true })
    assert.deepEqual([found.exitCode, found.records], [0, all.length], found.message)
    const tail: number[] = []
    for await (const { seq } of tailLedger(real, { from: 1 })) tail.push(seq)
    assert.deepEqual(tail, all.slice(1))
    const from = Math.floor(all.length / 3)
    const { items } = await ledgerPage(real, { from, to: null, limit: 2, wants: () => true })
    assert.deepEqual(
      items.map(({ seq }) => seq),
      [from, from + 1],
    )
    const at = String(items[0]?.rec.at)
    const byTime = await ledgerPage(real, { from: { at }, to: null, limit: 1, wants: () => true })
    assert.equal(byTime.items[0]?.rec.at, at)
  }
})

async function listed(real: string): Promise<number> {
  await using sequence = await LedgerSequence.open(real)
  return sequence.segments.length
}

// A small file is hashed record by record, and a large one by a thread, during which more records get their place.
for (const { bytes, open, named } of [
  { bytes: 4_100_000, open: MAX_OPEN_CALLS_NAMED + 1, named: 2 },
  { bytes: 16_000_000, open: 2 * MAX_OPEN_CALLS_NAMED + 5, named: 3 },
]) {
  test(`a segment with ${open} open calls is sealed, and a start closes each of them once`, () =>
    sealsWithOpenCalls(bytes, open, named))
}

async function sealsWithOpenCalls(bytes: number, open: number, named: number): Promise<void> {
  const disk = new MemoryDisk()
  const { faults, ...opening } = options(disk, { bytes })
  const ledger = await openLedger(opening)
  for (let from = 0; from < open; from += 1000) {
    const calls = Array.from({ length: Math.min(1000, open - from) }, (_, at) => `c${from + at}`)
    await Promise.all(calls.map((call) => ledger.append({ kind: 'intent', call })))
  }
  assert.equal(segmentNames(disk).length, 0)
  for (let count = 0; segmentNames(disk).length === 0; count++) {
    const long = { kind: 'admin', reason: 'x'.repeat(900) } as const
    await Promise.all(Array.from({ length: 100 }, () => ledger.append(long)))
    await turns(1)
    assert.ok(count < 1000, 'it is never sealed')
  }
  assert.deepEqual(faults, [])
  const crashed = disk.afterPowerCut()
  await ledger.close()
  {
    await using sequence = await LedgerSequence.open(path, sourceFilesOver(new MemoryDisk(crashed)))
    const record = readSegmentLine(Buffer.from(sequence.segments[0]?.record ?? ''))
    assert.ok(record !== null && 'from' in record.open)
    // The genesis is record 0.
    const intents = Array.from({ length: open }, (_, at) => at + 1)
    assert.deepEqual(await openCallsOf(record, sequence), intents)
    assert.equal(record.closed.seq - record.open.from + 1, named)
  }
  const closed = new Map<string, number>()
  const onRecord = (record: Buffer) => {
    const rec = JSON.parse(record.toString())
    if (rec.kind === 'outcome') closed.set(rec.call, (closed.get(rec.call) ?? 0) + 1)
  }
  const restarted = new MemoryDisk(crashed)
  for (let start = 0; start < 2; start++) await (await openLedger({ ...options(restarted), since: 'active' })).close()
  await (await openLedger({ ...options(restarted), onRecord })).close()
  assert.equal(closed.size, open)
  assert.ok([...closed.values()].every((count) => count === 1))

  const [name = ''] = segmentNames(restarted)
  const sealed = join(path, '..', name)
  const text = crashed.get(sealed)?.toString() ?? ''
  const [line = ''] = text.split('\n').filter((one) => one.includes('"kind":"open"'))
  const { prev, rec, seq } = JSON.parse(line)
  const forged = lineOf(prev, JSON.stringify({ ...rec, open: rec.open.with(0, 7) }), seq).text.trimEnd()
  for (const changed of [line.replace('"open":[1,2,', '"open":[1,3,'), forged]) {
    const disk = new MemoryDisk(new Map(crashed).set(sealed, Buffer.from(text.replace(line, changed))))
    await assert.rejects(openLedger({ ...options(disk), since: 'active' }), /which names calls.*is damaged/)
  }
}

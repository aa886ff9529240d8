import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { systemIds, TestClock } from '@plat/core'
import { MemoryDisk } from '@plat/testkit/disk'
import { tempFolder } from '@plat/testkit/local'
import { LedgerDamagedError, type OpenLedgerOptions, openLedger, type SegmentResult, verifySegments } from '../index.ts'
import { sourceFilesOver } from '../sequence/files.ts'
import { LedgerSequence } from '../sequence/sequence.ts'
import { verifyBeginning } from '../sequence/verify-segment.ts'
import { writeHead } from './head-file.ts'
import { resumePath } from './resume-point.ts'

const path = join(tempFolder(), 'audit.jsonl')
const RECORDS = 60

function options(files: MemoryDisk): OpenLedgerOptions {
  const clock = new TestClock()
  const sealing = { bytes: 1_000_000, seconds: 0, resumeEveryBytes: 6000 }
  return { path, tenant: '', replica: 'r1', clock, ids: systemIds(clock), files, sealing }
}

/** A ledger whose process was killed: call `early` is open at the resume point, `closed` was closed after it, `late` began after it. */
let files: Map<string, Buffer>
let lines: readonly string[]
/** Number of the resume point, and position of its line. */
let point: { readonly seq: number; readonly offset: number }

before(async () => {
  const disk = new MemoryDisk()
  const ledger = await openLedger(options(disk))
  await ledger.append({ kind: 'intent', call: 'early', tool: 'x' })
  await ledger.append({ kind: 'intent', call: 'closed', tool: 'x' })
  for (let count = 0; count < RECORDS; count++) await ledger.append({ kind: 'admin', tool: `t${count}` })
  const end = { durable() {}, failed: assert.fail }
  ledger.enter({ kind: 'outcome', call: 'closed' }, end)
  await ledger.append({ kind: 'intent', call: 'late', tool: 'x' })
  files = disk.afterPowerCut()
  await ledger.close()
  lines = text(files).split('\n').slice(0, -1)
  point = JSON.parse(files.get(resumePath(path))?.toString().split('\n')[0] ?? '')
  assert.ok(point.seq > RECORDS / 2 && point.seq < RECORDS, `record ${point.seq}`)
})

function text(all: ReadonlyMap<string, Buffer>): string {
  return all.get(path)?.toString() ?? ''
}

/** Starts on these files. Returns the numbers of the records that were read, the calls that were closed, and the unread beginning. */
async function start(all: ReadonlyMap<string, Buffer>, more: Partial<OpenLedgerOptions> = { since: 'active' }) {
  const disk = new MemoryDisk(all)
  const seen: number[] = []
  const onRecord: OpenLedgerOptions['onRecord'] = (_record, { seq }) => void seen.push(seq)
  const ledger = await openLedger({ ...options(disk), onRecord, ...more })
  await ledger.close()
  const closed = text(disk.afterPowerCut())
    .split('\n')
    .slice(lines.length, -1)
    .map((line) => JSON.parse(line).rec)
    .map(({ call, result }) => `${call} ${result}`)
  return { seen, closed, unread: ledger.unread, disk }
}

/** The same files with another ledger. */
function withText(changed: string): Map<string, Buffer> {
  return new Map(files).set(path, Buffer.from(changed))
}

test('a start reads from the last resume point on, and closes calls that were open there', async () => {
  const { seen, closed, unread } = await start(files)
  assert.equal(seen[0], point.seq)
  assert.equal(seen.at(-1), lines.length - 1)
  assert.deepEqual(closed.sort(), ['early unknown', 'late unknown'])
  assert.deepEqual([unread?.bytes, unread?.head.seq], [point.offset, point.seq - 1])
})

test('records before the resume point are read for a caller that needs them, or for one that needs all', async () => {
  for (const seq of [2, point.seq - 1, point.seq, point.seq + 1]) {
    const { hash } = JSON.parse(lines[seq] ?? '')
    const { seen, closed } = await start(files, { since: { seq, hash } })
    assert.equal(seen[0], Math.min(seq, point.seq))
    assert.deepEqual(closed.sort(), ['early unknown', 'late unknown'])
  }
  const { seen, unread } = await start(files, {})
  assert.deepEqual([seen[0], unread], [0, null])
})

test('a resume point that is malformed, or not of this file, is not used', async () => {
  const stored = files.get(resumePath(path))?.toString() ?? ''
  const [body = '', digest = ''] = stored.split('\n')
  const texts = ['', '{}', stored.replace('"seq":', '"seq":1'), `${body.slice(0, -1)},"x":1}\n${digest}\n`]
  for (const changed of texts) {
    const all = new Map(files).set(resumePath(path), Buffer.from(changed))
    assert.equal((await start(all)).seen[0], 0, changed)
  }
  const other = new MemoryDisk()
  const ledger = await openLedger(options(other))
  await ledger.append({ kind: 'admin' })
  await ledger.close()
  assert.equal((await start(withText(text(other.afterPowerCut())))).seen[0], 0)
})

test('a ledger that is cut before the resume point is refused, as its head is missing', async () => {
  const cut = withText(`${lines.slice(0, point.seq - 5).join('\n')}\n`)
  const { ledgerId } = JSON.parse(lines[0] ?? '').rec
  const { seq, hash } = JSON.parse(lines.at(-1) ?? '')
  const head = await writeHead(ledgerId, { seq, hash }, null)
  const heads = [{ place: 'elsewhere', read: async () => head, write: async () => {} }]
  await assert.rejects(start(cut, { since: 'active', heads }), /its end is missing/)
  // Without a head it is a shorter ledger, all of which is read.
  assert.equal((await start(cut)).seen[0], 0)
})

test('damage after the resume point is refused, and damage before it is found by the verification of what was not read', async () => {
  const forged = (seq: number) =>
    withText(`${lines.map((line, at) => (at === seq ? line.replace('"t', '"u') : line)).join('\n')}\n`)
  const late = point.seq + 3
  await assert.rejects(
    start(forged(late)),
    (error) => error instanceof LedgerDamagedError && error.damage.line === late + 1 && error.damage.seq === late,
  )
  const early = await start(forged(5))
  assert.equal(early.seen[0], point.seq)
  assert.match((await verified(early)) ?? '', /line 6 \(record 5, .*the hash does not match/)
  assert.equal(await verified(await start(files)), null)
  await assert.rejects(start(withText(`${lines.toSpliced(5, 1).join('\n')}\n`)), LedgerDamagedError)
})

async function verified({ disk, unread }: Awaited<ReturnType<typeof start>>): Promise<string | null> {
  assert.ok(unread !== null)
  await using sequence = await LedgerSequence.open(path, sourceFilesOver(disk))
  const active = sequence.parts.at(-1)
  assert.ok(active !== undefined)
  return await verifyBeginning(sequence.sourceOf(active), unread, sequence.segments.at(-1) ?? null)
}

test('the thread that verifies segments verifies what a start did not read as well', async (t) => {
  const real = join(tempFolder(), 'audit.jsonl')
  const alive = setInterval(() => {}, 1000)
  t.after(() => clearInterval(alive))
  writeFileSync(real, text(files).replace('"t3"', '"u3"'))
  writeFileSync(resumePath(real), files.get(resumePath(path)) ?? '')
  const { files: _memory, ...rest } = options(new MemoryDisk())
  const ledger = await openLedger({ ...rest, path: real, since: 'active' })
  const { promise, resolve, reject } = Promise.withResolvers<SegmentResult>()
  const parts = { bytesPerSecond: 100_000_000, unread: ledger.unread, onSegment: resolve, onFault: reject }
  const stop = verifySegments(real, parts)
  const { first, last, problem } = await promise
  assert.deepEqual([first, last], [0, point.seq - 1])
  assert.match(problem ?? '', /record 6, .*the hash does not match/)
  await stop()
  await ledger.close()
})

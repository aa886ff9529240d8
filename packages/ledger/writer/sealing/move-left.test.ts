import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { basename, dirname, join } from 'node:path'
import { test } from 'node:test'
import { systemIds, TestClock } from '@plat/core'
import { type Files, filesOver, type ReadHandle } from '@plat/state'
import { MemoryDisk } from '@plat/testkit/disk'
import { SimulatedKernel, type Survival } from '@plat/testkit/faults/kernel'
import { tempFolder } from '@plat/testkit/local'
import { appendSlowly, openSealing } from '@plat/testkit/sealed'
import {
  ArchivedError,
  LedgerSequence,
  leave,
  MerkleTree,
  openLedger,
  removeLeftovers,
  segmentsPath,
} from '../../index.ts'
import { sourceFilesOver } from '../../sequence/files.ts'
import { leftName, lineOfLeft } from '../../sequence/left-segments.ts'
import type { LedgerSegment } from '../../sequence/segment-entry.ts'
import { lineOf } from '../../testing/line.ts'
import { ListKeeper } from './list-keeper.ts'
import { MAX_LATE } from './move-left.ts'

const path = join(tempFolder(), 'audit.jsonl')
const LEFT = '2100-01-01T00:00:00Z'

/** A ledger of several segments, and a record of each. */
async function sealed() {
  const disk = new MemoryDisk()
  const ledger = await openSealing({ path, files: disk, bytes: 1500 })
  await appendSlowly(ledger, 30)
  await ledger.close()
  return { content: disk.afterPowerCut(), records: (await segmentsIn(disk)).map(({ first }) => first + 1) }
}

async function segmentsIn(files: Files): Promise<readonly LedgerSegment[]> {
  await using sequence = await LedgerSequence.open(path, sourceFilesOver(files))
  return await Array.fromAsync(sequence.segmentsOf(0, (sequence.parts.at(-1)?.first ?? 0) - 1))
}

/** Each of these records is read, or its segment left; returns the first records of segments that did. */
async function leftIn(files: Files, records: readonly number[], what: string): Promise<ReadonlySet<number>> {
  await using sequence = await LedgerSequence.open(path, sourceFilesOver(files))
  const left = new Set<number>()
  for (const seq of records) {
    const found = await sequence.lineOf(seq).catch((error: unknown) => error)
    if (found instanceof ArchivedError) {
      assert.equal(found.segment.archive, `there/${found.segment.first}`, what)
      left.add(found.segment.first)
    } else {
      assert.ok(found !== null && !(found instanceof Error), `${what}: record ${seq}: ${String(found)}`)
    }
  }
  return left
}

/** Lets these segments leave, by their indexes. Calls `onLeft` after each. */
async function leaveAll(files: Files, indexes: readonly number[], onLeft: (first: number) => void): Promise<void> {
  const leaving = { ledgerPath: path, list: new ListKeeper(path, files, {}), files }
  const all = await segmentsIn(files)
  for (const index of indexes) {
    const segment = all[index]
    assert.ok(segment !== undefined)
    await leave(leaving, segment, { archive: `there/${segment.first}`, checkpoint: '{}', left: LEFT })
    onLeft(segment.first)
  }
}

const SURVIVALS: readonly Survival[] = [true, false].flatMap((names) =>
  [true, false].map((bytes) => ({ names, bytes })),
)

test('after a crash before any system call of leaving, each segment is here or listed as left, and what was listed stays listed', async () => {
  const { content, records } = await sealed()
  const gone = new Set<number>()
  const moments: { readonly call: string; readonly states: Map<string, Buffer>[]; readonly gone: readonly number[] }[] =
    []
  const kernel: SimulatedKernel = new SimulatedKernel(content, null, (call) => {
    moments.push({ call, states: SURVIVALS.map((survival) => kernel.surviving(survival)), gone: [...gone] })
  })
  // The second one leaves after the third: it was held.
  await leaveAll(filesOver(kernel), [0, 2, 1, 3], (first) => gone.add(first))
  assert.equal((await leftIn(filesOver(kernel), records, 'no crash')).size, 4)
  const seen = new Set<string>()
  for (const [at, { call, states, gone: before }] of moments.entries()) {
    for (const [index, state] of states.entries()) {
      const digest = hash('sha256', JSON.stringify([before, ...state].map(String)))
      if (seen.has(digest)) continue
      seen.add(digest)
      const what = `crash before system call ${at} (${call}), state ${index}`
      const crashed = new SimulatedKernel(state)
      const files = filesOver(crashed)
      const left = await leftIn(files, records, what)
      for (const first of before) assert.ok(left.has(first), `${what}: segment ${first} is lost`)
      const list = new ListKeeper(path, files, {})
      await removeLeftovers({ ledgerPath: path, list, files }, await segmentsIn(files))
      await list.change((all) => all)
      const after = await leftIn(filesOver(new SimulatedKernel(crashed.afterPowerCut())), records, `${what}, and again`)
      for (const first of left) assert.ok(after.has(first), `${what}, and again: segment ${first} is lost`)
    }
  }
  assert.ok(seen.size > 20, `${seen.size} states of ${moments.length} system calls`)
})

test('with EIO or ENOSPC at any system call of leaving, the next attempt completes it', async () => {
  const { content, records } = await sealed()
  for (const code of ['EIO', 'ENOSPC', 'short'] as const) {
    for (let at = 0, calls = 1; at < calls; at++) {
      const kernel = new SimulatedKernel(content, { at, calls: 1, code })
      const files = filesOver(kernel)
      const what = `${code} at system call ${at}`
      const [first] = await segmentsIn(filesOver(new SimulatedKernel(content)))
      assert.ok(first !== undefined)
      const clock = new TestClock()
      const list = new ListKeeper(path, files, { clock })
      const leaving = { ledgerPath: path, list, files }
      await leave(leaving, first, { archive: 'there/0', checkpoint: '{}', left: LEFT }).catch(() => {})
      calls = Math.max(calls, kernel.calls)
      await clock.advance(60_000)
      await list.change((all) => all.map((one) => (one.first === 0 ? { ...one, archive: 'there/0', left: LEFT } : one)))
      await removeLeftovers(leaving, await segmentsIn(files))
      await list.change((all) => all)
      for (const disk of [kernel.contents(), kernel.afterPowerCut()]) {
        const left = await leftIn(filesOver(new SimulatedKernel(disk)), records, what)
        assert.deepEqual([...left], [0], what)
        const text = JSON.parse(String(disk.get(segmentsPath(path))))
        assert.deepEqual([text.v, text.left.count, text.segments[0].first > 0], [2, 1, true], what)
      }
      assert.deepEqual([kernel.foreign, kernel.open], [[], 0], what)
    }
  }
})

/** An entry of a segment of two records that left. */
function entryOf(index: number, record = 'x'): LedgerSegment {
  const place = { first: 2 * index, last: 2 * index + 1, bytes: 10, offset: 10 * index, from: '2026', to: '2026' }
  return { ...place, record, checkpoint: '{}', file: null, archive: `there/${2 * index}`, left: LEFT }
}

test('segments that left after later ones wait in the list, and then the file is written again with them', async () => {
  const disk = new MemoryDisk()
  const list = new ListKeeper(path, disk, {})
  const listed = () => JSON.parse(String(disk.readWhole(segmentsPath(path))))
  const odd = Array.from({ length: MAX_LATE }, (_, index) => entryOf(2 * index + 1))
  await list.change(() => odd)
  assert.deepEqual([listed().segments.length, listed().left.count], [0, MAX_LATE])
  const even = Array.from({ length: MAX_LATE }, (_, index) => entryOf(2 * index))
  await list.change((all) => [...all, ...even.slice(1)])
  assert.deepEqual([listed().segments.length, listed().left.count], [MAX_LATE - 1, MAX_LATE])
  const firsts = async () => (await segmentsIn(disk)).map(({ first }) => first)
  assert.deepEqual((await firsts()).slice(0, 4), [2, 4, 6, 8])
  await list.change((all) => [...even.slice(0, 1), ...all])
  assert.deepEqual([listed().segments.length, listed().left.count], [0, 2 * MAX_LATE])
  assert.equal(listed().left.file, leftName(path, 2))
  assert.deepEqual(
    await firsts(),
    Array.from({ length: 2 * MAX_LATE }, (_, index) => 2 * index),
  )
  const names = disk.list(dirname(path)).filter((name) => name.includes('.left.'))
  assert.deepEqual(names, [leftName(path, 2)])
  // Without the list, and with an older one, it is the same.
  const older = Buffer.from(JSON.stringify({ v: 1, segments: even }))
  for (const text of [null, older]) {
    const copy = new MemoryDisk(disk.afterPowerCut())
    if (text === null) copy.remove(segmentsPath(path))
    else copy.replace(segmentsPath(path), text)
    assert.equal((await segmentsIn(copy)).length, 2 * MAX_LATE)
    // Lines that the list does not state may not be durable: the process may have been killed while it wrote them.
    const { files, appended } = counting(copy)
    await new ListKeeper(path, files, {}).update()
    assert.deepEqual(appended, [leftName(path, 2)])
    assert.deepEqual(JSON.parse(String(copy.readWhole(segmentsPath(path)))), listed())
  }
})

test('a line that a crash left unfinished is cut off before the next one', async () => {
  const disk = new MemoryDisk()
  const list = new ListKeeper(path, disk, {})
  await list.change(() => [entryOf(0)])
  const file = join(dirname(path), leftName(path, 1))
  const torn = lineOfLeft(entryOf(1), null)?.bytes.subarray(0, 100)
  disk.openAppend(file).write(torn ?? Buffer.alloc(0))
  assert.deepEqual(
    (await segmentsIn(disk)).map(({ first }) => first),
    [0],
  )
  await list.change(() => [entryOf(1)])
  assert.deepEqual(
    (await segmentsIn(disk)).map(({ first }) => first),
    [0, 2],
  )
  assert.equal(String(disk.readWhole(file)).trimEnd().split('\n').length, 2)
})

/** Counts the bytes that are read and written. */
function counting(disk: MemoryDisk) {
  const count = { read: 0, written: 0 }
  /** Files that were opened for appending, which brings their ends to disk. */
  const appended: string[] = []
  const counted = <T extends ReadHandle>(handle: T): T => ({
    ...handle,
    read(target: Uint8Array, position: number) {
      const got = handle.read(target, position)
      count.read += got
      return got
    },
  })
  const files: Files = {
    openAppend(path) {
      appended.push(basename(path))
      const handle = counted(disk.openAppend(path))
      return {
        ...handle,
        append(bytes, done) {
          count.written += bytes.length
          handle.append(bytes, done)
        },
      }
    },
    openRead: (path) => counted(disk.openRead(path)),
    readWhole(path) {
      const bytes = disk.readWhole(path)
      count.read += bytes?.length ?? 0
      return bytes
    },
    replace(path, bytes) {
      count.written += bytes.length
      disk.replace(path, bytes)
    },
    rewrite: (path, bytes) => disk.rewrite(path, bytes),
    exists: (path) => disk.exists(path),
    list: (folder) => disk.list(folder),
    rename: (from, to) => disk.rename(from, to),
    remove: (path) => disk.remove(path),
  }
  return { files, count, appended }
}

/** Line of the `segment` record of the last of so many segments. */
function lastRecord(count: number): string {
  const [first, last] = [2 * count - 2, 2 * count - 2]
  const bits = (last + 1).toString(2).replaceAll('0', '').length
  const subtrees = Array.from({ length: bits }, (_, at) => Buffer.alloc(32, at + 1))
  const tree = { size: last + 1, subtrees }
  const hex = subtrees.map((one) => one.toString('hex'))
  const head = 'a'.repeat(64)
  const rec = { at: '2026', first, head, kind: 'segment', last, ledgerId: 'x', open: [] }
  const text = JSON.stringify({ ...rec, root: new MerkleTree(tree).root(), size: last + 1, subtrees: hex })
  return lineOf(head, text, last + 1).text.trimEnd()
}

test('a start, a seal and a segment that leaves read and write no more with 100,000 segments that left than with 100', async () => {
  const counts: { readonly start: number; readonly change: number; readonly lookUp: number }[] = []
  for (const segments of [100, 100_000]) {
    const lines: Buffer[] = []
    let head: Parameters<typeof lineOfLeft>[1] = null
    for (let index = 0; index < segments; index++) {
      const line = lineOfLeft(entryOf(index, index === segments - 1 ? lastRecord(segments) : 'x'.repeat(50)), head)
      assert.ok(line !== null)
      lines.push(line.bytes)
      head = line.head
    }
    const bytes = Buffer.concat(lines)
    assert.ok(head !== null)
    const left = { file: leftName(path, 1), bytes: bytes.length, count: segments, hash: head.hash }
    const text = { v: 2, left: { ...left, last: 2 * segments - 1, end: 10 * segments }, segments: [] }
    const disk = new MemoryDisk(
      new Map([
        [join(dirname(path), left.file), bytes],
        [segmentsPath(path), Buffer.from(JSON.stringify(text))],
      ]),
    )
    const { files, count } = counting(disk)
    const clock = new TestClock()
    const list = new ListKeeper(path, files, { clock })
    const sealing = { bytes: 4000, seconds: 0, list }
    const place = { path, tenant: '', replica: 'r', clock, ids: systemIds(clock), files, sealing }
    const ledger = await openLedger({ ...place, since: 'active' })
    assert.equal(ledger.head().seq, 2 * segments - 1)
    const start = count.read
    await appendSlowly(ledger, 30)
    await ledger.close()
    await using before = await LedgerSequence.open(path, sourceFilesOver(disk))
    const [sealed] = before.segments
    assert.ok(sealed !== undefined)
    Object.assign(count, { read: 0, written: 0 })
    await leave({ ledgerPath: path, list, files }, sealed, { archive: 'there', checkpoint: '{}', left: LEFT })
    const change = count.read + count.written
    assert.equal(JSON.parse(String(disk.readWhole(segmentsPath(path)))).left.count, segments + 1)
    Object.assign(count, { read: 0 })
    await using sequence = await LedgerSequence.open(path, sourceFilesOver(files))
    assert.equal((await sequence.segmentOf(segments))?.archive, `there/${segments - (segments % 2)}`)
    counts.push({ start, change, lookUp: count.read })
  }
  const [few, many] = counts
  assert.ok(few !== undefined && many !== undefined)
  assert.ok(many.start < few.start + 100_000, JSON.stringify(counts))
  assert.ok(many.change < few.change + 100_000, JSON.stringify(counts))
  assert.ok(many.lookUp < few.lookUp + 200_000, JSON.stringify(counts))
})

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { TestClock } from '@plat/core'
import { type DiskFault, MemoryDisk } from '@plat/testkit/disk'
import { openFileJournal } from './index.ts'
import { journalPromises, type Sample } from './journal.conformance.ts'

let folder = ''
let path = ''
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'plat-'))
  path = join(folder, 'journal.jsonl')
})
after(() => rmSync(folder, { recursive: true }))
beforeEach(() => rmSync(path, { force: true }))

function decode(event: unknown): Sample {
  const known = typeof event === 'object' && event !== null && 't' in event && event.t === 'sample' && 'n' in event
  if (!known || typeof event.n !== 'number') throw new Error('unknown event')
  return { t: 'sample', n: event.n }
}
const open = () => openFileJournal({ path, clock: new TestClock(), decode })

journalPromises({
  name: 'file',
  async open() {
    const journal = await open()
    return { journal, close: () => journal.close() }
  },
  reset: async () => rmSync(path, { force: true }),
})

async function numbers(): Promise<number[]> {
  const journal = await open()
  const found: number[] = []
  for await (const { event } of journal.read(0)) found.push(event.n)
  await journal.close()
  return found
}

test('a follower that starts during a write sees the event once', async () => {
  const journal = await open()
  const stop = new AbortController()
  const seen: number[] = []
  const appended = journal.append('a', [{ t: 'sample', n: 1 }])
  // The write runs in the next turn of the event loop, and its fdatasync is pending in the one after.
  await new Promise((resolve) => setImmediate(resolve))
  const following = journal.follow(0, ({ event }) => void seen.push(event.n), stop.signal)
  await appended
  stop.abort()
  await following
  await journal.close()
  assert.deepEqual(seen, [1])
})

test('a torn last line is cut off, and the events of one append are all present or all absent', async () => {
  const journal = await open()
  await journal.append('a', [{ t: 'sample', n: 1 }])
  await journal.append('a', [
    { t: 'sample', n: 2 },
    { t: 'sample', n: 3 },
  ])
  await journal.close()
  const whole = readFileSync(path)
  const first = whole.indexOf(0x0a) + 1
  for (const cut of [first + 1, first + 40, whole.length - 1]) {
    writeFileSync(path, whole.subarray(0, cut))
    assert.deepEqual(await numbers(), [1])
    assert.equal(readFileSync(path).length, first)
  }
})

test('damage before the end is refused, naming file and byte', async () => {
  const journal = await open()
  await journal.append('a', [{ t: 'sample', n: 1 }])
  await journal.close()
  const bytes = readFileSync(path)
  for (const at of [2, 12, 30, bytes.length - 4]) {
    const changed = Buffer.from(bytes)
    changed[at] = (changed[at] ?? 0) ^ 1
    writeFileSync(path, changed)
    await assert.rejects(open(), /journal .*journal\.jsonl is damaged at byte 0/)
  }
})

test('an unknown event keeps the journal closed, and a second opener is refused', async () => {
  const journal = await openFileJournal({ path, clock: new TestClock(), decode: (event) => event })
  await journal.append('a', [{ t: 'from the future' }])
  await assert.rejects(open(), /in use by another process/)
  await journal.close()
  await assert.rejects(open(), /unknown event/)
})

test('under every disk fault, nothing is acknowledged that a power failure could lose', async () => {
  const kinds: readonly DiskFault['kind'][] = ['EIO', 'ENOSPC', 'short']
  for (let at = 0; at < 14; at++) for (const kind of kinds) await failAt({ at, kind })
})

async function failAt(fault: DiskFault): Promise<void> {
  const disk = new MemoryDisk(new Map(), [fault])
  const acknowledged: number[] = []
  const opened = await openFileJournal({ path, clock: new TestClock(), decode, files: disk }).catch(() => null)
  for (let n = 1; n <= 4 && opened !== null; n++) {
    const done = await opened.append('a', [{ t: 'sample', n }]).catch(() => null)
    if (done !== null) acknowledged.push(n)
    else assert.equal(opened.health, 'poisoned')
  }
  const cut = new MemoryDisk(disk.afterPowerCut())
  await opened?.close()
  const journal = await openFileJournal({ path, clock: new TestClock(), decode, files: cut })
  const found: number[] = []
  for await (const { event } of journal.read(0)) found.push(event.n)
  await journal.close()
  assert.deepEqual(found.slice(0, acknowledged.length), acknowledged, `${fault.kind} at operation ${fault.at}`)
}

test('after a failed write the journal refuses, then recovers with everything it had acknowledged', async () => {
  const clock = new TestClock()
  // Operations: open, then write (1) and sync (2) of the first event, write (3) and sync (4) of the second.
  const disk = new MemoryDisk(new Map(), [{ at: 4, kind: 'EIO' }])
  const journal = await openFileJournal({ path, clock, decode, files: disk })
  assert.equal(await journal.append('a', [{ t: 'sample', n: 1 }]), 1)
  await assert.rejects(journal.append('a', [{ t: 'sample', n: 2 }]), /journal .* EIO/)
  assert.equal(journal.health, 'poisoned')
  await assert.rejects(journal.append('a', [{ t: 'sample', n: 2 }]), /cannot be written/)
  await clock.advance(300)
  assert.equal(journal.health, 'ok')
  // The refused event has no version: the next one gets it.
  assert.equal(await journal.append('a', [{ t: 'sample', n: 3 }], 1), 2)
  const found: number[] = []
  for await (const { event } of journal.read(0)) found.push(event.n)
  await journal.close()
  assert.deepEqual(found, [1, 3])
})

test('a compaction that fails before the file is replaced leaves the journal writable', async () => {
  // Operations: open, write and sync of one event, then the replacement (3).
  const disk = new MemoryDisk(new Map(), [{ at: 3, kind: 'ENOSPC' }])
  const journal = await openFileJournal({ path, clock: new TestClock(), decode, files: disk })
  await journal.append('a', [{ t: 'sample', n: 1 }])
  await assert.rejects(journal.compact(1, []), /could not be compacted: ENOSPC/)
  assert.equal(await journal.append('a', [{ t: 'sample', n: 2 }], 1), 2)
  await journal.close()
})

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { systemIds, TestClock } from '@plat/core'
import { type DiskEvent, type DiskFault, MemoryDisk } from '@plat/testkit/disk'
import { Chain, followChain } from '../chain.ts'
import { type FileLedger, LedgerDamagedError, openLedger, repairLedger } from '../index.ts'

let folder = ''
let path = ''
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'plat-'))
  path = join(folder, 'audit.jsonl')
})
after(() => rmSync(folder, { recursive: true }))

type Head = { readonly seq: number; readonly hash: string }

function options(files: MemoryDisk, clock = new TestClock()) {
  return { path, tenant: '', replica: 'r1', clock, ids: systemIds(clock), files }
}

/** Returns the hashes of the ledger on this disk by `seq`; fails when the chain is invalid. */
async function chainOf(disk: MemoryDisk): Promise<Map<number, string>> {
  const bytes = Buffer.from(disk.readWhole(path) ?? [])
  const hashes = new Map<number, string>()
  const found = await followChain({
    source: { read: (target, at) => bytes.copy(target, 0, at, at + target.length) },
    chain: new Chain(null),
    onRecord: (_buffer, _start, line) => {
      hashes.set(line.seq, line.hash)
      return null
    },
  })
  assert.equal(found.damage, null)
  assert.equal(found.tail.length, 0)
  return hashes
}

async function holdsAll(disk: MemoryDisk, acknowledged: readonly Head[], what: string): Promise<void> {
  const hashes = await chainOf(disk)
  for (const { seq, hash } of acknowledged) assert.equal(hashes.get(seq), hash, `${what}: record ${seq} is lost`)
}

/** Appends in rounds of one to four records; counts acknowledged and refused ones. */
async function work(ledger: FileLedger, clock: TestClock, rounds: number, acknowledged: Head[]): Promise<number> {
  let refused = 0
  for (let round = 0; round < rounds; round++) {
    const appends = Array.from({ length: 1 + (round % 4) }, (_, index) =>
      ledger.append({ kind: 'admin', tool: `t${round}-${index}` }),
    )
    for (const one of await Promise.allSettled(appends)) {
      if (one.status === 'fulfilled') acknowledged.push(one.value)
      else refused++
    }
    await clock.advance(100)
  }
  // Time for the file to be reopened, and event loop turns for the commit of the gap record.
  for (let turn = 0; turn < 10; turn++) await clock.advance(100)
  return refused
}

test('under every disk fault, nothing is acknowledged that a power failure could lose', async () => {
  const clean = new MemoryDisk()
  const cleanClock = new TestClock()
  const ledger = await openLedger(options(clean, cleanClock))
  await work(ledger, cleanClock, 6, [])
  await ledger.close()
  const kinds: readonly DiskFault['kind'][] = ['EIO', 'ENOSPC', 'short']
  for (let at = 0; at < clean.operations; at++) for (const kind of kinds) await failAt({ at, kind })
})

async function failAt(fault: DiskFault): Promise<void> {
  const what = `${fault.kind} at operation ${fault.at}`
  const disk = new MemoryDisk(new Map(), [fault])
  const clock = new TestClock()
  const acknowledged: Head[] = []
  const ledger = await openLedger(options(disk, clock)).catch(() => null)
  if (ledger !== null) {
    const refused = await work(ledger, clock, 6, acknowledged)
    const gap = [...disk.events].some((event) => event.op === 'write' && event.bytes.includes('"kind":"gap"'))
    assert.equal(gap, refused > 0, `${what}: a gap record exactly when records were refused`)
    // The power fails while the ledger is open: `close` must not be what saves the records.
    const cut = new MemoryDisk(disk.afterPowerCut())
    await ledger.close()
    await (await openLedger(options(cut))).close()
    await holdsAll(cut, acknowledged, what)
  }
  const next = new MemoryDisk(disk.afterPowerCut())
  await (await openLedger(options(next))).close()
  await holdsAll(next, acknowledged, what)
}

/** Callers that append again once acknowledged: enough of them to be kept in two halves. */
const CALLERS = 128
const APPENDS_EACH = 3

/** Acknowledged records of many callers, until its first refusal. */
async function appendByMany(ledger: FileLedger, acknowledged: Head[]): Promise<void> {
  const caller = async (name: number) => {
    for (let n = 0; n < APPENDS_EACH; n++)
      acknowledged.push(await ledger.append({ kind: 'admin', tool: `t${name}-${n}` }))
  }
  await Promise.allSettled(Array.from({ length: CALLERS }, (_, name) => caller(name)))
}

test('while one batch is being written, the callers of the previous one are acknowledged, and no failure loses records of either', async () => {
  const clean = new MemoryDisk()
  const ledger = await openLedger(options(clean))
  const all: Head[] = []
  await appendByMany(ledger, all)
  await ledger.close()
  assert.equal(all.length, CALLERS * APPENDS_EACH)
  await holdsAll(new MemoryDisk(clean.afterPowerCut()), all, 'no fault')
  const lines = clean.events.flatMap((event) =>
    event.op === 'write' ? [event.bytes.toString().split('\n').length - 1] : [],
  )
  assert.ok(lines.includes(CALLERS / 2), `records of each commit: ${lines}`)
  const kinds: readonly DiskFault['kind'][] = ['EIO', 'short']
  for (let at = 3; at < clean.operations; at++) {
    for (const kind of kinds) {
      const disk = new MemoryDisk(new Map(), [{ at, kind }])
      const failing = await openLedger(options(disk))
      const acknowledged: Head[] = []
      await appendByMany(failing, acknowledged)
      // The power fails while the ledger is open. Half of a write may be on disk: opening cuts it off.
      const cut = new MemoryDisk(disk.afterPowerCut())
      await failing.close()
      await (await openLedger(options(cut))).close()
      await holdsAll(cut, acknowledged, `${kind} at operation ${at}`)
    }
  }
})

test('a failed fdatasync is never retried: the file is reopened, and the gap record counts the missing records', async () => {
  const clock = new TestClock()
  // Operations: open, genesis write and sync, then write (3) and sync (4) of the first record.
  const disk = new MemoryDisk(new Map(), [{ at: 4, kind: 'EIO' }])
  const ledger = await openLedger(options(disk, clock))
  await assert.rejects(ledger.append({ kind: 'admin' }), /could not be made durable/)
  assert.equal(ledger.health, 'poisoned')
  await assert.rejects(ledger.append({ kind: 'admin' }), /the last write failed: EIO/)
  await clock.advance(300)
  const { seq } = await ledger.append({ kind: 'admin' })
  assert.equal(ledger.health, 'ok')
  assert.equal(seq, 2)
  await ledger.close()
  const [, gap] = Buffer.from(disk.readWhole(path) ?? [])
    .toString()
    .split('\n')
  const { kind, count, reason } = JSON.parse(gap ?? '').rec
  assert.deepEqual({ kind, count, reason }, { kind: 'gap', count: 2, reason: 'EIO' })
})

/** Content of the files after these events; `tear` bytes of the last one, when it is a write; `hole`: one of its sectors was not written. */
function stateAfter(events: readonly DiskEvent[], tear: number | null, hole: number | null): Map<string, Buffer> {
  const files = new Map<string, Buffer>()
  for (const [index, event] of events.entries()) {
    const old = files.get(event.path) ?? Buffer.alloc(0)
    if (event.op === 'replace') files.set(event.path, event.bytes)
    if (event.op === 'truncate') files.set(event.path, old.subarray(0, event.size))
    if (event.op !== 'write') continue
    const last = index === events.length - 1
    const bytes = Buffer.from(last && tear !== null ? event.bytes.subarray(0, tear) : event.bytes)
    if (last && hole !== null) bytes.fill(0, hole, hole + SECTOR)
    files.set(event.path, Buffer.concat([old, bytes]))
  }
  return files
}

const SECTOR = 512

/** Offsets at which a write of `length` bytes at `at` crosses a sector. */
function borders(at: number, length: number): number[] {
  const found: number[] = []
  for (let border = SECTOR - (at % SECTOR); border < length; border += SECTOR) found.push(border)
  return found
}

test('every crash state of a trace of 200 operations keeps the acknowledged records', async () => {
  const clock = new TestClock()
  // The trace begins with a torn tail, so that setting it aside is interrupted as well.
  const torn = new Map([[path, Buffer.from('{"hash":"torn')]])
  const disk = new MemoryDisk(torn)
  disk.events.push({ op: 'write', path, at: 0, bytes: Buffer.from('{"hash":"torn') })
  const ledger = await openLedger(options(disk, clock))
  const acknowledged: (Head & { readonly after: number })[] = []
  for (let round = 0; disk.events.length < 200; round++) {
    const appends = Array.from({ length: 1 + (round % 4) }, (_, index) =>
      ledger.append({ kind: 'admin', tool: `t${round}-${index}` }),
    )
    for (const head of await Promise.all(appends)) acknowledged.push({ ...head, after: disk.events.length })
  }
  await ledger.close()
  let states = 0
  for (let count = 1; count <= disk.events.length; count++) {
    const events = disk.events.slice(0, count)
    const last = events.at(-1)
    const cuts = last?.op === 'write' ? borders(last.at, last.bytes.length) : []
    const surviving = acknowledged.filter(({ after }) => after <= count)
    // A torn write had no fdatasync, so its records were not acknowledged, and the check is the same.
    for (const tear of [null, ...cuts])
      await survives(stateAfter(events, tear, null), surviving, `${count} events, torn at ${tear}`)
    for (const hole of cuts.slice(0, -1))
      await survives(stateAfter(events, null, hole), surviving, `${count} events, a hole at ${hole}`)
    states += 1 + cuts.length
  }
  assert.ok(states > 300, `${states} states`)
})

/** Opening this state succeeds or refuses; after a refusal a repair succeeds. Acknowledged records survive in both cases. */
async function survives(files: Map<string, Buffer>, heads: readonly Head[], what: string): Promise<void> {
  const disk = new MemoryDisk(files)
  try {
    await (await openLedger(options(disk))).close()
  } catch (error) {
    assert.ok(error instanceof LedgerDamagedError, `${what}: ${String(error)}`)
    await repairLedger(options(disk))
  }
  await holdsAll(disk, heads, what)
}

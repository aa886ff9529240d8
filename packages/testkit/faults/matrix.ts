import assert from 'node:assert/strict'
import { systemIds, TestClock } from '@plat/core'
import { type FileLedger, type LedgerMeter, openLedger } from '@plat/ledger'
import { filesOver, type OpenJournal, openFileJournal } from '@plat/state'
import { type CallFault, FAULT_CODES, SimulatedKernel } from './kernel.ts'

/** Result of a run over every system call and error. */
export interface FaultCount {
  readonly runs: number
  readonly acknowledged: number
}

export interface FaultMatrix {
  /** The file under test; only its lock is on the real file system. */
  readonly path: string
  /** How many calls in a row fail. */
  readonly lengths: readonly number[]
  /** Rounds of appends before and after a compaction, or of the ledger. */
  readonly rounds: number
  /** Size at which segments of the ledger are sealed; absent: never. */
  readonly segmentBytes?: number
  /** Number of system calls from one that fails to the next; default 1. */
  readonly step?: number
}

/** Longer than the longest pause before a file is opened again, in milliseconds. */
const PAUSE_MS = 31_000
/** A fault ends after so many system calls at most; each attempt makes at least one. */
const MOST_ATTEMPTS = 100

interface Trace {
  readonly step: number
  /** Runs the code under test; throws an assertion when a promise is broken. Returns how many appends were acknowledged. */
  run(kernel: SimulatedKernel, what: string): Promise<number>
}

/** Fails each system call of a journal's life with each error; 0 acknowledged events lost, 0 foreign descriptors, and it works again when the fault ends. */
export function journalFaults({ path, lengths, rounds }: FaultMatrix): Promise<FaultCount> {
  return everyFault(lengths, { step: 1, run: (kernel, what) => runJournal({ kernel, path, rounds, what }) })
}

/** The same for the ledger. */
export function ledgerFaults({ path, lengths, rounds, segmentBytes = 0, step = 1 }: FaultMatrix): Promise<FaultCount> {
  return everyFault(lengths, { step, run: (kernel, what) => runLedger({ kernel, path, rounds, what, segmentBytes }) })
}

async function everyFault(lengths: readonly number[], trace: Trace): Promise<FaultCount> {
  const clean = new SimulatedKernel()
  let acknowledged = await trace.run(clean, 'no fault')
  let runs = 1
  for (let at = 0; at < clean.calls; at += trace.step) {
    for (const code of [...FAULT_CODES, 'short'] as const) {
      for (const calls of code === 'short' ? [1] : lengths) {
        const fault: CallFault = { at, calls, code }
        const kernel = new SimulatedKernel(new Map(), fault)
        const what = `${code} at system call ${at}, ${calls} in a row`
        acknowledged += await trace.run(kernel, what)
        assert.deepEqual(kernel.foreign, [], what)
        assert.equal(kernel.open, 0, `${what}: descriptors are still open`)
        runs++
      }
    }
  }
  return { runs, acknowledged }
}

interface Run {
  readonly kernel: SimulatedKernel
  readonly path: string
  readonly rounds: number
  readonly what: string
  readonly segmentBytes?: number
}

/** Retries after a pause until it works: the fault ends without a restart. */
async function untilWorks<T>(clock: TestClock, what: string, work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (attempt === MOST_ATTEMPTS) throw new Error(`${what}: does not work again`, { cause: error })
      await clock.advance(PAUSE_MS)
    }
  }
}

async function runJournal({ kernel, path, rounds, what }: Run): Promise<number> {
  const clock = new TestClock()
  const options = { path, clock, decode: Number, files: filesOver(kernel) }
  const journal = await untilWorks(clock, what, () => openFileJournal(options))
  const acknowledged: number[] = []
  const followed: number[] = []
  const stop = new AbortController()
  const following = untilWorks(clock, what, () =>
    journal.follow(0, ({ event }) => void followed.push(event), stop.signal),
  )
  let next = 0
  const append = async () => {
    const event = next++
    if ((await journal.append(`key-${event % 3}`, [event]).catch(() => null)) !== null) acknowledged.push(event)
  }
  for (let round = 0; round < rounds; round++) await Promise.all([append(), append()])
  await compact(journal, acknowledged).catch(() => {})
  for (let round = 0; round < rounds; round++) await Promise.all([append(), append()])
  const holdsAll = async (files: ReadonlyMap<string, Buffer>, when: string) => {
    const found = await eventsIn(files, path)
    assert.equal(new Set(found).size, found.length, `${what}: an eventis listed twice ${when}`)
    for (const event of acknowledged) assert.ok(found.includes(event), `${what}: event ${event} is lost ${when}`)
  }
  await holdsAll(kernel.afterPowerCut(), 'after a power cut')
  acknowledged.push(await untilWorks(clock, what, () => journal.append('last', [next++]).then(() => next - 1)))
  assert.equal(journal.health, 'ok')
  await holdsAll(kernel.afterPowerCut(), 'after the fault ended')
  stop.abort()
  await following
  assert.deepEqual(
    [...new Set(followed)].sort(byValue),
    [...acknowledged].sort(byValue),
    `${what}: a follower saw others`,
  )
  await journal.close()
  return acknowledged.length
}

/** A snapshot that repeats each event under a separate key. */
async function compact(journal: OpenJournal<number>, acknowledged: readonly number[]): Promise<void> {
  let upTo = 0
  for await (const { seq } of journal.read(0)) upTo = Math.max(upTo, seq)
  await journal.compact(
    upTo,
    acknowledged.map((event) => ({ key: `snapshot-${event}`, version: 1, event })),
  )
}

async function eventsIn(files: ReadonlyMap<string, Buffer>, path: string): Promise<number[]> {
  const copy = filesOver(new SimulatedKernel(files))
  const bytes = Buffer.from(copy.readWhole(path) ?? []).toString()
  return bytes
    .split('\n')
    .slice(0, -1)
    .flatMap((line): number[] => JSON.parse(line).events)
}

function byValue(a: number, b: number): number {
  return a - b
}

async function runLedger({ kernel, path, rounds, what, segmentBytes = 0 }: Run): Promise<number> {
  const clock = new TestClock()
  const sealing = { bytes: segmentBytes, seconds: 0 }
  const reports = { poisoned: 0, recovered: 0, refused: 0 }
  const meter: LedgerMeter = {
    committed() {},
    missed() {},
    poisoned: () => void reports.poisoned++,
    recovered: () => void reports.recovered++,
  }
  const files = filesOver(kernel)
  const options = { path, tenant: '', replica: 'r1', clock, ids: systemIds(clock), files, sealing, meter }
  const ledger = await untilWorks(clock, what, () => {
    // A start that failed reports nothing but its error.
    reports.poisoned = 0
    return openLedger(options)
  })
  const acknowledged: Acknowledged[] = []
  for (let round = 0; round < rounds; round++) {
    const appends = [0, 1].map((index) => ledger.append({ kind: 'admin', tool: `t${round}-${index}` }))
    for (const one of await Promise.allSettled(appends)) {
      if (one.status === 'fulfilled') acknowledged.push(one.value)
      else reports.refused++
    }
  }
  if (reports.refused > 0) assert.ok(reports.poisoned > 0, `${what}: records were refused without a report`)
  holdsLines(kernel.afterPowerCut(), acknowledged, `${what}, after a power cut`)
  if (segmentBytes > 0) await opens(kernel.afterPowerCut(), path, acknowledged, `${what}, started after a power cut`)
  acknowledged.push(await untilWorks(clock, what, () => appendOnce(ledger)))
  await untilWorks(clock, what, async () => assert.equal(ledger.health, 'ok'))
  assert.equal(reports.recovered > 0, reports.poisoned > 0, `${what}: the end of the fault is reported`)
  holdsLines(kernel.afterPowerCut(), acknowledged, `${what}, after the fault ended`)
  await ledger.close()
  await listsAreWritten()
  return acknowledged.length
}

async function appendOnce(ledger: FileLedger) {
  const head = await ledger.append({ kind: 'admin', tool: 'last' })
  await ledger.flush()
  return head
}

/** The list of segments is written in the background, in a few turns of the event loop. */
async function listsAreWritten(): Promise<void> {
  for (let turn = 0; turn < 30; turn++) await new Promise((resolve) => setImmediate(resolve))
}

export interface Acknowledged {
  readonly seq: number
  readonly hash: string
}

function holdsLines(files: ReadonlyMap<string, Buffer>, acknowledged: readonly Acknowledged[], what: string): void {
  const starts = [...files.values()].flatMap((bytes) => bytes.toString().split('\n').map(startOfLine))
  const found = new Set(starts)
  for (const { seq, hash } of acknowledged) assert.ok(found.has(`{"hash":"${hash}"`), `${what}: record ${seq} is lost`)
}

function startOfLine(line: string): string {
  return line.slice(0, `{"hash":"${'0'.repeat(64)}"`.length)
}

/** Opens the ledger as it is after a power cut, on a disk without faults: that completes what was begun, and verifies the chain. */
async function opens(
  files: ReadonlyMap<string, Buffer>,
  path: string,
  acknowledged: readonly Acknowledged[],
  what: string,
): Promise<void> {
  const found = new Map<number, string>()
  const clock = new TestClock()
  const ledger = await openLedger({
    ...{ path: `${path}.cut`, tenant: '', replica: 'r2', clock, ids: systemIds(clock) },
    files: filesOver(new SimulatedKernel(new Map([...files].map(([name, bytes]) => [renamed(name, path), bytes])))),
    onRecord: (_record, { seq, hash }) => void found.set(seq, hash),
  })
  await ledger.close()
  for (const { seq, hash } of acknowledged) assert.equal(found.get(seq), hash, `${what}: record ${seq} is lost`)
}

/** The same file of a ledger under another path: that of the test is locked. */
export function renamed(name: string, path: string): string {
  return name.startsWith(path) ? `${path}.cut${name.slice(path.length)}` : name
}

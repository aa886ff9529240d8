import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { systemIds, TestClock } from '@plat/core'
import { type FileLedger, leafHash, MerkleTree, openLedger, readSegmentLine } from '@plat/ledger'
import { filesOver } from '@plat/state'
import { SimulatedKernel, type Survival } from './kernel.ts'
import { type Acknowledged, renamed } from './matrix.ts'

export interface PrefixOptions {
  /** The ledger of the trace; only its lock is on the real file system. */
  readonly path: string
  /** Number of system calls in the trace. */
  readonly calls: number
  /** Size at which segments are sealed. */
  readonly segmentBytes: number
  /** Number of system calls from one crash to the next; default 1. */
  readonly step?: number
}

export interface PrefixCount {
  readonly states: number
  readonly sealed: number
  readonly acknowledged: number
}

type DiskState = ReadonlyMap<string, Buffer>

/** The moment before a system call. */
interface Moment {
  readonly call: string
  readonly states: readonly DiskState[]
  /** Number of records that were acknowledged before. */
  readonly acknowledged: number
}

const SURVIVALS: readonly Survival[] = [true, false].flatMap((names) =>
  [true, false].map((bytes) => ({ names, bytes })),
)
/** Small, so that starts use resume points. */
const RESUME_BYTES = 400
/** Lives of the writer in one trace: starts are part of it. */
const LIVES = 3

/**
 * Records the system calls of a ledger that is sealed again and again, and crashes before each of them: with folder entries and bytes that were not
 * synced kept or lost, and with each write torn. Every state must open without help, hold what was acknowledged up to there, and go on.
 */
export async function everyPrefix({ path, calls, segmentBytes, step = 1 }: PrefixOptions): Promise<PrefixCount> {
  const { moments, acknowledged } = await recordTrace(path, calls, segmentBytes)
  const seen = new Set<string>()
  let sealed = 0
  for (let at = 0; at < moments.length; at += step) {
    const moment = moments[at]
    if (moment === undefined) continue
    const torn = tornStates(moment, moments[at + 1])
    for (const [index, state] of [...moment.states, ...torn].entries()) {
      const digest = digestOf(state, moment.acknowledged)
      if (seen.has(digest)) continue
      seen.add(digest)
      const what = `crash before system call ${at} (${moment.call}), state ${index}`
      sealed = Math.max(
        sealed,
        await survives(state, { path, segmentBytes, what }, acknowledged.slice(0, moment.acknowledged)),
      )
    }
  }
  return { states: seen.size, sealed, acknowledged: acknowledged.length }
}

async function recordTrace(path: string, calls: number, segmentBytes: number) {
  const acknowledged: Acknowledged[] = []
  const moments: Moment[] = []
  const kernel: SimulatedKernel = new SimulatedKernel(new Map(), null, (call) => {
    const states = SURVIVALS.map((survival) => kernel.surviving(survival))
    moments.push({ call, states, acknowledged: acknowledged.length })
  })
  for (let life = 1; life <= LIVES; life++) {
    const ledger = await openOn(kernel, path, { segmentBytes })
    for (let round = 0; kernel.calls < (calls * life) / LIVES; round++) {
      for (const head of await Promise.all(appendRound(ledger, round))) acknowledged.push(head)
    }
    await ledger.close()
    await listsAreWritten()
  }
  return { moments, acknowledged }
}

/** One to four records; of each second round a call stays open. */
function appendRound(ledger: FileLedger, round: number): Promise<Acknowledged>[] {
  const appends = Array.from({ length: round % 4 }, (_, index) =>
    ledger.append({ kind: 'admin', tool: `t${round}-${index}` }),
  )
  const intent = ledger.append({ kind: 'intent', call: `c${round}`, tool: 'x' })
  if (round % 2 === 0) ledger.enter({ kind: 'outcome', call: `c${round}` }, { durable: () => {}, failed: () => {} })
  return [...appends, intent]
}

function openOn(
  kernel: SimulatedKernel,
  path: string,
  { segmentBytes, ...more }: { readonly segmentBytes: number } & Partial<Parameters<typeof openLedger>[0]>,
): Promise<FileLedger> {
  const clock = new TestClock()
  const sealing = { bytes: segmentBytes, seconds: 0, resumeEveryBytes: RESUME_BYTES }
  return openLedger({
    ...{ path, tenant: '', replica: 'r1', clock, ids: systemIds(clock), files: filesOver(kernel), sealing },
    ...more,
  })
}

/** The list of segments is written in the background, in a few turns of the event loop. */
async function listsAreWritten(): Promise<void> {
  for (let turn = 0; turn < 30; turn++) await new Promise((resolve) => setImmediate(resolve))
}

/** States in which the write between two moments is on disk in part: a byte, up to a sector or the middle, and all but a byte. */
function tornStates(before: Moment, after: Moment | undefined): DiskState[] {
  const [old, now] = [before.states[0], after?.states[0]]
  if (before.call !== 'write' || old === undefined || now === undefined) return []
  return [...now].flatMap(([path, bytes]) => {
    const from = old.get(path)?.length
    if (from === undefined || bytes.length <= from) return []
    const cuts = [
      from + 1,
      from + ((bytes.length - from) >> 1),
      (Math.floor(from / SECTOR) + 1) * SECTOR,
      bytes.length - 1,
    ]
    return cuts.filter((cut) => cut < bytes.length).map((cut) => new Map(now).set(path, bytes.subarray(0, cut)))
  })
}

const SECTOR = 512

function digestOf(state: DiskState, acknowledged: number): string {
  const digest = createHash('sha256').update(`${acknowledged}`)
  for (const [path, bytes] of [...state].sort(([a], [b]) => (a < b ? -1 : 1))) digest.update(path).update(bytes)
  return digest.digest('hex')
}

/** Opens the state as a start of a gateway does, appends, and reads the whole ledger at the next start. Returns how many segments it has. */
async function survives(
  state: DiskState,
  { path, segmentBytes, what }: { readonly path: string; readonly segmentBytes: number; readonly what: string },
  acknowledged: readonly Acknowledged[],
): Promise<number> {
  const cut = `${path}.cut`
  const kernel = new SimulatedKernel(new Map([...state].map(([name, bytes]) => [renamed(name, path), bytes])))
  const found = new Map<number, string>()
  try {
    const first = await openOn(kernel, cut, { segmentBytes, since: 'active' })
    const own = await first.append({ kind: 'admin', tool: 'after the crash' })
    await first.close()
    await listsAreWritten()
    const onRecord = (_record: Buffer, { seq, hash }: Acknowledged) => void found.set(seq, hash)
    await (await openOn(kernel, cut, { segmentBytes, onRecord })).close()
    for (const { seq, hash } of [...acknowledged, own]) assert.equal(found.get(seq), hash, `record ${seq} is lost`)
    return checkSegments(kernel.contents())
  } catch (error) {
    throw new Error(`${what}: ${String(error)}`, { cause: error })
  }
}

/** Each sealed segment ends with a `segment` record, whose root is that of all lines before it. Returns the number of segments. */
function checkSegments(files: DiskState): number {
  const names = [...files.keys()].filter((name) => SEALED.test(name)).sort()
  const tree = new MerkleTree()
  for (const name of names) {
    const lines = (files.get(name) ?? Buffer.alloc(0)).toString().split('\n').slice(0, -1)
    const stated = readSegmentLine(Buffer.from(lines.at(-1) ?? ''))
    assert.equal(stated?.first, Number(SEALED.exec(name)?.[1]), `first record of ${name}`)
    for (const line of lines.slice(0, -1)) tree.add(leafHash(Buffer.from(line)))
    assert.equal(stated === null ? '' : new MerkleTree(stated.tree).root(), tree.root(), `root of ${name}`)
    tree.add(leafHash(Buffer.from(lines.at(-1) ?? '')))
  }
  return names.length
}

const SEALED = /\.(\d{20})\.jsonl$/

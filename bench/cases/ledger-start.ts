import { createHash, hash } from 'node:crypto'
import { closeSync, ftruncateSync, mkdirSync, openSync, writeSync } from 'node:fs'
import path from 'node:path'
import { systemClock, systemIds } from '@plat/core'
import { type LedgerSegment, ListKeeper, MerkleTree, openLedger, type SealingOptions, segmentPath } from '@plat/ledger'
import { type BenchCase, type Row, row } from '../harness/report.ts'
import { median } from '../harness/stats.ts'

const MIB = 1024 * 1024
export const SEGMENT_BYTES = 256 * MIB
/** Numbers of sealed segments, up to 100 GiB. Between first and last line they are holes. */
export const SIZES = [1, 100, 400] as const
const RECORDS_EACH = 500_000
const RUNS = 5
const LEFT_SEGMENTS = 100_000
/** Time of all records. */
const AT = '2026-01-01T00:00:00.000000Z'

/** Milliseconds until a ledger with sealed segments is open: a start does not read them. Their list is missing, so that it is rebuilt as well. */
export const ledgerStart: BenchCase = {
  name: 'ledger-start',
  async run({ dir }) {
    const rows = []
    for (const count of SIZES) {
      const file = path.join(dir, String(count), 'audit.jsonl')
      mkdirSync(path.dirname(file))
      writeSegments(file, count)
      const times = await startTimes(file)
      const what = `a ledger with ${(count * SEGMENT_BYTES) / MIB / 1024} GiB of sealed segments is open`
      rows.push(row({ what, value: median(times), unit: 'ms', target: ['≤', 1000], detail: `${RUNS} starts` }))
    }
    rows.push(await startAfterLeft(path.join(dir, 'left', 'audit.jsonl')))
    return rows
  },
}

/** Milliseconds of each start. */
async function startTimes(file: string): Promise<readonly number[]> {
  const times: number[] = []
  for (let run = 0; run < RUNS; run++) {
    const began = performance.now()
    const ledger = await openBenchLedger(file)
    times.push(performance.now() - began)
    // The head must not be in a segment that is a hole.
    await ledger.append({ kind: 'admin' })
    await ledger.close()
  }
  return times
}

/** Starts with segments that left, by retention. */
async function startAfterLeft(file: string): Promise<Row> {
  mkdirSync(path.dirname(file))
  const left: LedgerSegment[] = []
  for (let index = 0, prev: string | null = null; index < LEFT_SEGMENTS; index++) {
    const { first, last, end } = linesOf(index, prev)
    prev = end.digest
    const place = { first, last, bytes: SEGMENT_BYTES, offset: index * SEGMENT_BYTES, from: AT, to: AT }
    left.push({ ...place, record: end.text, checkpoint: null, file: null, archive: `s3://bench/${first}`, left: AT })
  }
  await new ListKeeper(file, null, {}).change(() => left)
  const times = await startTimes(file)
  const what = `a ledger of which ${LEFT_SEGMENTS} segments left is open`
  return row({ what, value: median(times), unit: 'ms', target: ['≤', 1000], detail: `${RUNS} starts` })
}

/** Opens a ledger as a gateway does. */
export function openBenchLedger(path: string, sealing?: SealingOptions): ReturnType<typeof openLedger> {
  const options = { path, tenant: '', replica: 'bench', clock: systemClock, ids: systemIds(systemClock) }
  return openLedger({ ...options, since: 'active', ...(sealing !== undefined && { sealing }) })
}

/** Writes so many sealed segments of a ledger. */
export function writeSegments(file: string, count: number): void {
  let last: string | null = null
  for (let index = 0; index < count; index++) last = writeSegment(file, index, last)
}

/** Writes a segment of which only the first and last line exist. Returns the hash of the last. */
function writeSegment(file: string, index: number, prev: string | null): string {
  const { first, begin, end } = linesOf(index, prev)
  const fd = openSync(segmentPath(file, first), 'w')
  writeSync(fd, `${begin.text}\n`)
  ftruncateSync(fd, SEGMENT_BYTES)
  writeSync(fd, `\n${end.text}\n`, SEGMENT_BYTES - Buffer.byteLength(end.text) - 2)
  closeSync(fd)
  return end.digest
}

/** Returns the first and last line of a segment. */
function linesOf(index: number, prev: string | null) {
  const first = index * RECORDS_EACH
  const last = first + RECORDS_EACH - 1
  const common = `"at":"${AT}"`
  const genesis = `{${common},"kind":"config","ledgerId":"bench","replica":"r","tenant":""}`
  const begin = lineOf(prev ?? '0'.repeat(64), first === 0 ? genesis : `{${common},"kind":"admin"}`, first)
  const head = hash('sha256', String(index))
  const tree = { size: last, subtrees: subtreesOf(last) }
  const hex = JSON.stringify(tree.subtrees.map((one) => one.toString('hex')))
  const rec = `{${common},"first":${first},"head":"${head}","kind":"segment","last":${last - 1},"ledgerId":"bench","open":[],"root":"${new MerkleTree(tree).root()}","size":${last},"subtrees":${hex}}`
  return { first, last, begin, end: lineOf(head, rec, last) }
}

function lineOf(prev: string, rec: string, seq: number) {
  const body = `"prev":"${prev}","rec":${rec},"seq":${seq},"v":1}`
  const digest = createHash('sha256').update(`plat-ledger-v1\n${body}`).digest('hex')
  return { text: `{"hash":"${digest}",${body}`, digest }
}

/** Any roots: a tree of this size has as many as its number has bits. */
function subtreesOf(size: number): Buffer[] {
  const bits = size.toString(2).replaceAll('0', '').length
  return Array.from({ length: bits }, (_, at) => hash('sha256', `${size} ${at}`, 'buffer'))
}

import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { buildPackage, makeKeys, startGateway } from '../harness/plat.ts'
import { type BenchCase, type Row, row } from '../harness/report.ts'
import { median } from '../harness/stats.ts'
import { sampleRecord } from './ledger.ts'
import { openBenchLedger, SEGMENT_BYTES, SIZES, writeSegments } from './ledger-start.ts'

const MIB = 1024 * 1024
/** Starts that count; one before them warms the compile cache. */
const STARTS = 3
/** Milliseconds without requests after which a process counts as idle. */
const IDLE_MS = 1_500
const LAST_SEGMENT_BYTES = 32 * MIB
const BATCH = 4_000

/** Time to ready and resident memory of the package's gateway with sealed segments, compared with one whose ledger is empty. */
export const gatewayStart: BenchCase = {
  name: 'gateway-start',
  async run({ dir }) {
    const keys = await makeKeys(dir)
    const bin = buildPackage(dir)
    const rows: Row[] = []
    let emptyMib = 0
    for (const count of [0, ...SIZES]) {
      const folder = path.join(dir, `segments-${count}`)
      if (count > 0) await prepare(path.join(folder, 'gateway', 'audit.jsonl'), count)
      const { ms, mib, cpuMs } = await measure(() => startGateway(folder, keys, 'http://127.0.0.1:9/mcp', { bin }))
      if (count === 0) emptyMib = mib
      const what = `with ${count} sealed segments (${Math.round((count * SEGMENT_BYTES) / MIB / 1024)} GiB)`
      rows.push(
        row({
          what: `ready ${what}`,
          value: ms,
          unit: 'ms',
          target: ['≤', 1000],
          detail: `${STARTS} starts, ${cpuMs.toFixed(0)} ms of CPU`,
        }),
      )
      const detail = `${mib.toFixed(0)} MiB resident`
      if (count > 0)
        rows.push(
          row({
            what: `memory above an empty one ${what}`,
            value: mib - emptyMib,
            unit: 'MiB',
            target: ['≤', 30],
            detail,
          }),
        )
    }
    return rows
  },
}

async function measure(
  start: () => ReturnType<typeof startGateway>,
): Promise<{ ms: number; mib: number; cpuMs: number }> {
  const times: number[] = []
  const sizes: number[] = []
  const cpus: number[] = []
  for (let run = 0; run <= STARTS; run++) {
    const began = performance.now()
    const server = await start()
    try {
      const response = await fetch(`${server.url}/readyz`)
      if (response.status !== 200) throw new Error(`/readyz answers ${response.status}: ${await response.text()}`)
      const ms = performance.now() - began
      const cpuMs = server.cpuMicros() / 1000
      await new Promise((resolve) => setTimeout(resolve, IDLE_MS))
      if (run === 0) continue
      times.push(ms)
      cpus.push(cpuMs)
      sizes.push(server.rssBytes() / MIB)
    } finally {
      await server.stop()
    }
  }
  return { ms: median(times), mib: median(sizes), cpuMs: median(cpus) }
}

/** A ledger as a gateway leaves it: sealed segments, the last one without holes, an active file, and state saved up to its last record. */
async function prepare(file: string, count: number): Promise<void> {
  mkdirSync(path.dirname(file), { recursive: true })
  writeSegments(file, count - 1)
  const ledger = await openBenchLedger(file, { bytes: LAST_SEGMENT_BYTES, seconds: 0 })
  while (sealedIn(file) < count)
    await Promise.all(Array.from({ length: BATCH }, (_, n) => ledger.append({ ...sampleRecord(n), kind: 'decision' })))
  const { seq, hash } = ledger.head()
  await ledger.close()
  const recent = JSON.stringify({ ledger: { seq, hash }, anchor: null, records: [] })
  writeFileSync(`${file}.recent.json`, `${recent}\n${sha256(recent)}\n`)
  const totals = JSON.stringify({ version: 1, ledger: { seq, hash }, totalMicros: 0, open: [], told: [], counted: [] })
  const body = totals.slice(0, -1)
  writeFileSync(`${file}.finops.json`, `${body},"sha256":"${sha256(body)}"}`)
}

function sealedIn(file: string): number {
  return readdirSync(path.dirname(file)).filter((name) => /\.\d{20}\.jsonl$/.test(name)).length
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

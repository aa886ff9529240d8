import { existsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import path from 'node:path'
import { systemClock, systemIds } from '@plat/core'
import { openLedger, segmentsPath, verifyLedger } from '@plat/ledger'
import { type BenchCase, row } from '../harness/report.ts'
import { sampleRecord } from './ledger.ts'

/** Records of the ledger; `npm run long -- -only segments` takes ten million. */
const RECORDS = Number(process.env.PLAT_BENCH_RECORDS ?? 1_000_000)
const QUICK_RECORDS = 300_000
/** Sealed segments of the ledger, at least: all cores have work until the end. */
const SEGMENTS = 8
const MAX_SEGMENT_BYTES = 256 * 1024 * 1024
/** Bytes of a record of the sample. */
const RECORD_BYTES = 700
/** Appends that wait for one commit together. */
const BATCH = 4_000

/** A ledger of many segments: thousands of records that `plat audit verify` checks in a second of CPU time, and the cores that it uses. */
export const ledgerSegments: BenchCase = {
  name: 'segments',
  async run({ dir, effort }) {
    const records = effort.quick ? QUICK_RECORDS : RECORDS
    const file = path.join(dir, 'segments.jsonl')
    const sealing = {
      bytes: Math.min(MAX_SEGMENT_BYTES, Math.ceil((records * RECORD_BYTES) / SEGMENTS)),
      seconds: 0,
    }
    const parts = { path: file, tenant: '', replica: 'bench', clock: systemClock, ids: systemIds(systemClock), sealing }
    const ledger = await openLedger(parts)
    for (let n = 0; n < records; n += BATCH) {
      await Promise.all(
        Array.from({ length: Math.min(BATCH, records - n) }, (_, i) => ledger.append(closedRecord(n + i))),
      )
    }
    await ledger.close()
    if (!existsSync(segmentsPath(file))) throw new Error('void: the ledger has no sealed segments')
    const raw = await measure(file, records, false)
    const strict = await measure(file, records, true)
    const cores = availableParallelism()
    const detail = ({ seconds }: { seconds: number }) =>
      `${(records / 1e6).toFixed(1)} M records in ${seconds.toFixed(1)} s`
    const what = 'records of segments verified by a core'
    return [
      row({ what, value: raw.rate, unit: 'k/s', target: ['≥', 400], detail: detail(raw) }),
      row({ what: `${what}, --strict`, value: strict.rate, unit: 'k/s', target: ['≥', 120], detail: detail(strict) }),
      row({
        what: 'cores used, --strict',
        value: strict.cores,
        unit: '',
        target: ['≥', cores * 0.8],
        detail: `of ${cores}`,
      }),
    ]
  },
}

/** A record that opens no call: a file with many open calls is not sealed. */
function closedRecord(n: number) {
  return { ...sampleRecord(n), kind: 'decision' as const }
}

/** Rate in thousands of records per second of CPU time. */
async function measure(file: string, records: number, strict: boolean) {
  const [began, cpu] = [performance.now(), process.cpuUsage()]
  const finding = await verifyLedger(file, { strict })
  if (finding.exitCode !== 0 || finding.records <= records) throw new Error(`void: ${finding.message}`)
  const seconds = (performance.now() - began) / 1000
  const { user, system } = process.cpuUsage(cpu)
  const cpuSeconds = (user + system) / 1e6
  return { rate: records / 1000 / cpuSeconds, seconds, cores: cpuSeconds / seconds }
}

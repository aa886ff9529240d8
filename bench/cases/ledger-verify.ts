import path from 'node:path'
import { verifyLedger } from '@plat/ledger'
import { type BenchCase, row } from '../harness/report.ts'
import { median } from '../harness/stats.ts'
import { openLedgerIn, sampleRecord } from './ledger.ts'

/** Records of the ledger that is verified. */
const RECORDS = 200_000
const QUICK_RECORDS = 60_000
/** Appends that wait for one commit together. */
const BATCH = 4_000
const RUNS = 3

/** Thousands of records a second that `plat audit verify` checks: chain over raw bytes, and `--strict`. */
export const ledgerVerify: BenchCase = {
  name: 'audit',
  async run({ dir, effort }) {
    const records = effort.quick ? QUICK_RECORDS : RECORDS
    const ledger = await openLedgerIn(dir, 'audit')
    for (let n = 0; n < records; n += BATCH) {
      await Promise.all(
        Array.from({ length: Math.min(BATCH, records - n) }, (_, i) => ledger.append(sampleRecord(n + i))),
      )
    }
    await ledger.close()
    const file = path.join(dir, 'audit')
    const raw = await rate(file, records, false)
    const strict = await rate(file, records, true)
    const detail = `${records} records`
    return [
      row({ what: 'records verified, chain over raw bytes', value: raw, unit: 'k/s', target: ['≥', 400], detail }),
      row({ what: 'records verified, --strict', value: strict, unit: 'k/s', target: ['≥', 120], detail }),
    ]
  },
}

async function rate(file: string, records: number, strict: boolean): Promise<number> {
  const rates: number[] = []
  for (let run = 0; run < RUNS; run++) {
    const began = performance.now()
    const finding = await verifyLedger(file, { strict })
    if (finding.exitCode !== 0 || finding.records <= records) throw new Error(`void: ${finding.message}`)
    rates.push(records / (performance.now() - began))
  }
  return median(rates)
}

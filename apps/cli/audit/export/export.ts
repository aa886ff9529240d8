import { extname } from 'node:path'
import type { Writable } from 'node:stream'
import { type Clock, systemClock } from '@plat/core'
import type { LedgerMoment } from '@plat/ledger'
import { type LedgerSource, lastSeq, searchRecords } from '../../shared/ledger-source.ts'
import { leftText } from '../../shared/left-records.ts'
import { CommandError, type Output } from '../../shared/output.ts'
import { type ProgressScreen, progressBar } from '../../shared/progress.ts'
import { momentOf } from '../moments.ts'
import { csv, type Encoder, type ExportFormat, exportFormats, jsonLines } from './encoders.ts'
import { type Target, toFile, toStream } from './target.ts'

export type AuditExportOptions = LedgerSource & {
  /** Times or numbers of records, as typed. */
  readonly from?: string
  readonly to?: string
  /** Default: by the extension of the file. */
  readonly format?: ExportFormat
  /** Default: stdout. */
  readonly output?: string
}

/** Environment of the command. */
export interface ExportAround {
  readonly clock?: Pick<Clock, 'now'>
  readonly stdout?: Writable & { readonly isTTY?: boolean }
  readonly screen?: ProgressScreen
}

/** Exports of fewer records show no progress. */
const LONG_RECORDS = 50_000

/** `plat audit export`: writes the records of a range to a file or to stdout. Holds a row group of Parquet, or 256 KiB, at a time. */
export async function auditExport(
  options: AuditExportOptions,
  output: Output,
  { clock = systemClock, stdout = process.stdout, screen = process.stderr }: ExportAround = {},
): Promise<number> {
  const { output: file } = options
  const format = options.format ?? formatOf(file)
  if (format === 'parquet' && file === undefined && stdout.isTTY === true) {
    throw new CommandError('Parquet is not text: name a file with -o, or redirect the output', 2)
  }
  const now = clock.now()
  const range = { from: momentOf(options.from, 'from', now), to: momentOf(options.to, 'to', now) }
  const encoder = await encoderOf(format)
  const write = (target: Target) => copy(options, range, encoder, { target, screen })
  const records = await (file === undefined ? toStream(stdout, write) : toFile(file, write))
  output.err(`${records} records${file === undefined ? '' : ` written to ${file}`}`)
  const left = await leftText(options, range)
  if (left !== null) output.err(left)
  return 0
}

function formatOf(file: string | undefined): ExportFormat {
  const extension = extname(file ?? '').slice(1)
  return exportFormats.find((format) => format === extension) ?? 'jsonl'
}

async function encoderOf(format: ExportFormat): Promise<Encoder> {
  if (format === 'parquet') return (await import('./parquet.ts')).parquet()
  return format === 'csv' ? csv() : jsonLines()
}

interface Range {
  readonly from: LedgerMoment | undefined
  readonly to: LedgerMoment | undefined
}

/** Returns the number of records. */
async function copy(
  source: LedgerSource,
  { from, to }: Range,
  encoder: Encoder,
  { target, screen }: { readonly target: Target; readonly screen: ProgressScreen },
): Promise<number> {
  const bar = progressBar(screen, { least: LONG_RECORDS })
  // Records that are added meanwhile are left out.
  const head = await lastSeq(source)
  const last = typeof to === 'number' ? Math.min(to, head) : head
  const query = { ...(from !== undefined && { from }), to: typeof to === 'object' ? to : last }
  let records = 0
  let first = -1
  try {
    await target.write(encoder.begin())
    for await (const record of searchRecords(source, query)) {
      if (record.seq > last) break
      await target.write(encoder.add(record))
      records++
      if (first === -1) first = record.seq
      bar.show(record.seq - first, last - first)
    }
    await target.write(encoder.end())
  } finally {
    bar.clear()
  }
  return records
}

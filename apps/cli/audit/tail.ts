import { stringify } from 'yaml'
import { type LedgerSource, readRecords, type SourceRecord } from '../shared/ledger-source.ts'
import { CommandError, type Format, type Output } from '../shared/output.ts'
import { eventOf, groundsOf, targetOf, textOf } from '../shared/record.ts'

export type AuditTailOptions = LedgerSource & {
  readonly follow?: boolean
  /** Records to begin with, as typed. */
  readonly lines?: string
  readonly output: Format
}

/** Shows the latest records of a ledger, one line each, and with `follow` those to come until the signal aborts. */
export async function auditTail(options: AuditTailOptions, output: Output, stop?: AbortSignal): Promise<number> {
  const { lines = '20', follow = false } = options
  if (!/^\d{1,9}$/.test(lines)) throw new CommandError(`-lines ${lines}: give a whole number`, 2)
  const print = printers[options.output]
  const wanted = { last: Number(lines), ...(follow && { follow: stop ?? interrupted() }) }
  for await (const record of readRecords(options, wanted)) output.out(print(record))
  return 0
}

/** Ctrl-C ends following, as an answer and not as a failure. */
function interrupted(): AbortSignal {
  const stop = new AbortController()
  process.once('SIGINT', () => stop.abort())
  return stop.signal
}

const printers: Readonly<Record<Format, (line: SourceRecord) => string>> = {
  json: (line) => line.text,
  yaml: (line) => `---\n${stringify({ seq: line.seq, ...line.rec }).trimEnd()}`,
  table: readable,
}

/** Columns: time, what happened, who, on what, why, how long. What is absent shows as `-`. */
function readable({ seq, rec }: SourceRecord): string {
  const time = textOf(rec.at).slice(0, 23).replace('T', ' ')
  const who = [rec.namespace, rec.agent].map(textOf).filter(Boolean).join('/')
  const ms = typeof rec.ms === 'number' ? `${rec.ms} ms` : ''
  const columns = [
    [String(seq), 6],
    [time, 23],
    [eventOf(rec), 20],
    [who, 20],
    [targetOf(rec), 28],
    [groundsOf(rec), 34],
    [ms, 0],
  ] as const
  return columns
    .map(([value, width]) => (value === '' ? '-' : value).padEnd(width))
    .join('  ')
    .trimEnd()
}

import { type LedgerSource, readRecords } from '../shared/ledger-source.ts'
import type { Output } from '../shared/output.ts'
import { type RecordFormat, recordPrinter, stdoutTerminal, type Terminal } from './layout.ts'
import { countOf, type FilterFlags, filterOf } from './moments.ts'

export type AuditTailOptions = LedgerSource &
  FilterFlags & {
    readonly follow?: boolean
    /** Records to begin with, as typed. */
    readonly lines?: string
    readonly output: RecordFormat
  }

/** Environment of the command. */
export interface TailAround {
  readonly stop?: AbortSignal | undefined
  readonly screen?: Terminal
}

/** Shows the latest records of a ledger, one line each, and with `follow` those to come until the signal aborts. */
export async function auditTail(
  options: AuditTailOptions,
  output: Output,
  { stop, screen = stdoutTerminal() }: TailAround = {},
): Promise<number> {
  const { lines = '20', follow = false } = options
  const last = countOf(lines, 'lines')
  const filter = filterOf(options)
  const print = await recordPrinter(options.output, screen)
  const wanted = { last, ...(filter && { filter }), ...(follow && { follow: stop ?? interrupted() }) }
  for await (const record of readRecords(options, wanted)) output.out(print(record))
  return 0
}

/** Ctrl-C ends following, as an answer and not as a failure. */
function interrupted(): AbortSignal {
  const stop = new AbortController()
  process.once('SIGINT', () => stop.abort())
  return stop.signal
}

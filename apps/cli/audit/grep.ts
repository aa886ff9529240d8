import { type Clock, systemClock } from '@plat/core'
import { type LedgerSource, searchRecords } from '../shared/ledger-source.ts'
import { leftText } from '../shared/left-records.ts'
import type { Output } from '../shared/output.ts'
import { type RecordFormat, recordPrinter, stdoutTerminal, type Terminal } from './layout.ts'
import { countOf, type FilterFlags, filterOf, momentOf } from './moments.ts'

export type AuditGrepOptions = LedgerSource &
  FilterFlags & {
    readonly since?: string
    readonly until?: string
    readonly newest?: boolean
    readonly limit?: string
    readonly output: RecordFormat
  }

/** Environment of the command. */
export interface GrepAround {
  readonly clock?: Pick<Clock, 'now'>
  readonly screen?: Terminal
}

/** `plat audit grep`: prints the records that all flags select, one line each. */
export async function auditGrep(
  options: AuditGrepOptions,
  output: Output,
  { clock = systemClock, screen = stdoutTerminal() }: GrepAround = {},
): Promise<number> {
  const { since, until, newest = false, limit } = options
  const now = clock.now()
  const [from, to, filter] = [momentOf(since, 'since', now), momentOf(until, 'until', now), filterOf(options)]
  const print = await recordPrinter(options.output, screen)
  const query = {
    ...(filter && { filter }),
    ...(from !== undefined && { from }),
    ...(to !== undefined && { to }),
    ...(limit !== undefined && { limit: countOf(limit, 'limit') }),
    newestFirst: newest,
  }
  let count = 0
  for await (const record of searchRecords(options, query)) {
    output.out(print(record))
    count++
  }
  if (count === 0) output.err('no record matches')
  const left = await leftText(options, { from, to })
  if (left !== null) output.err(left)
  return 0
}

import { systemClock } from '@plat/core'
import { type TailLine, tailLedger } from '@plat/ledger'
import { stringify } from 'yaml'
import { CommandError, type Format, type Output } from '../shared/output.ts'

export interface AuditTailOptions {
  readonly path: string
  readonly follow?: boolean
  /** Records to begin with, as typed. */
  readonly lines?: string
  readonly output: Format
}

/** Shows the latest records of a ledger, one line each, and with `follow` those to come until the signal aborts. */
export async function auditTail(options: AuditTailOptions, output: Output, stop?: AbortSignal): Promise<number> {
  const { path, lines = '20', follow = false } = options
  if (!/^\d{1,9}$/.test(lines)) throw new CommandError(`-lines ${lines}: give a whole number`, 2)
  const print = printers[options.output]
  const more = follow ? { follow: { signal: stop ?? interrupted(), clock: systemClock } } : {}
  try {
    for await (const line of tailLedger(path, { last: Number(lines), ...more })) output.out(print(line))
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
    throw new CommandError(`${path} does not exist: no call has been governed here yet, or the path is wrong`)
  }
  return 0
}

/** Ctrl-C ends following, as an answer and not as a failure. */
function interrupted(): AbortSignal {
  const stop = new AbortController()
  process.once('SIGINT', () => stop.abort())
  return stop.signal
}

const printers: Readonly<Record<Format, (line: TailLine) => string>> = {
  json: (line) => line.text,
  yaml: (line) => `---\n${stringify({ seq: line.seq, ...line.rec }).trimEnd()}`,
  table: readable,
}

/** Columns: time, what happened, who, on what, why, how long. What is absent shows as `-`. */
function readable({ seq, rec }: TailLine): string {
  const time = text(rec.at).slice(0, 23).replace('T', ' ')
  const who = [rec.namespace, rec.agent].map(text).filter(Boolean).join('/')
  const what = [rec.server, rec.tool ?? rec.method].map(text).filter(Boolean).join('/')
  const rule = [rec.policy, rec.rule].map(text).filter(Boolean).join('#')
  const ms = typeof rec.ms === 'number' ? `${rec.ms} ms` : ''
  const columns = [
    [String(seq), 6],
    [time, 23],
    [happened(rec), 20],
    [who, 20],
    [what, 28],
    [rule || detail(rec), 34],
    [ms, 0],
  ] as const
  return columns
    .map(([value, width]) => (value === '' ? '-' : value).padEnd(width))
    .join('  ')
    .trimEnd()
}

function happened(rec: TailLine['rec']): string {
  const kind = text(rec.kind)
  if (kind === 'outcome') return text(rec.code) || text(rec.result)
  if (kind === 'decision') return `denied ${text(rec.code)}`
  if (kind === 'approval') return `approval ${text(rec.event)}`
  return kind
}

/** The subject of a record that does not belong to a call. */
function detail(rec: TailLine['rec']): string {
  if (rec.kind === 'gap') return `${String(rec.count)} records missing: ${text(rec.reason)}`
  if (rec.kind === 'recovered') return `${String(rec.bytes)} bytes kept in ${text(rec.file)}`
  // Before a change is made its record has no status yet.
  if (rec.kind === 'admin')
    return [text(rec.action), ...(rec.status === undefined ? [] : [String(rec.status)])].join(' ')
  if (rec.kind === 'config') return `ledger ${text(rec.ledgerId)}`
  return rec.kind === 'checkpoint' ? `up to record ${String(rec.upTo)}` : text(rec.reason)
}

/** Text from the ledger on a terminal: control characters could move the cursor, so they are shown as `?`. */
function text(value: unknown): string {
  return typeof value === 'string' ? value.replace(/\p{Cc}/gu, '?') : ''
}

import { styleText } from 'node:util'
import type { SourceRecord } from '../shared/ledger-source.ts'
import type { Format } from '../shared/output.ts'
import { eventOf, groundsOf, targetOf, textOf } from '../shared/record.ts'

/** How records are printed: `wide` cuts nothing. */
export type RecordFormat = Format | 'wide'

export const recordFormats: readonly RecordFormat[] = ['table', 'wide', 'json', 'yaml']

/** The terminal that lines are printed on. */
export interface Terminal {
  readonly columns: number
  readonly isColored: boolean
}

/** Width where none is known. */
const USUAL_COLUMNS = 80
const GAP = '  '

/** Returns width and colors of stdout: colors on a terminal, unless NO_COLOR is set. */
export function stdoutTerminal({ stdout, env } = process): Terminal {
  const isTerminal = stdout.isTTY === true && env.TERM !== 'dumb'
  return { columns: (isTerminal && stdout.columns) || USUAL_COLUMNS, isColored: isTerminal && !env.NO_COLOR }
}

/** Returns what prints a record as one line, or as a document of YAML. */
export async function recordPrinter(
  format: RecordFormat,
  terminal: Terminal,
): Promise<(record: SourceRecord) => string> {
  if (format === 'json') return ({ text }) => text
  if (format === 'yaml') {
    // Loaded here: `plat help` loads this module for the formats.
    const { stringify } = await import('yaml')
    return ({ seq, rec }) => `---\n${stringify({ seq, ...rec }).trimEnd()}`
  }
  return format === 'wide' ? wide : (record) => short(record, terminal)
}

/** Columns: number, time, event, agent, target, grounds, duration. Absent values are shown as `-`. */
function wide(record: SourceRecord): string {
  const { seq, rec } = record
  const ms = typeof rec.ms === 'number' ? `${rec.ms} ms` : ''
  const time = textOf(rec.at).slice(0, 23).replace('T', ' ')
  const cells = [
    [String(seq), 6],
    [time, 23],
    [eventOf(rec), 20],
    [agentOf(record), 20],
    [targetOf(rec), 28],
    [groundsOf(rec), 34],
    [ms, 0],
  ] as const
  return cells
    .map(([value, width]) => (value === '' ? '-' : value).padEnd(width))
    .join(GAP)
    .trimEnd()
}

const DEFAULT = /^default\//
/** Shares of the columns beside number and time, of the characters that they have together. */
const SHARES = { event: 0.22, agent: 0.24, target: 0.27 } as const
const TIME = { from: 'YYYY-MM-DDT'.length, to: 'YYYY-MM-DDTHH:MM:SS'.length } as const

/** The same columns without date, duration and the namespace `default`, cut so that the line fits into the terminal. */
function short(record: SourceRecord, { columns, isColored }: Terminal): string {
  const { seq, rec } = record
  const number = String(seq).padEnd(6)
  const time = textOf(rec.at)
    .slice(TIME.from, TIME.to)
    .padEnd(TIME.to - TIME.from)
  const room = Math.max(columns - number.length - time.length - 5 * GAP.length, 24)
  const [eventWidth, agentWidth, targetWidth] = [SHARES.event, SHARES.agent, SHARES.target].map((share) =>
    Math.floor(share * room),
  )
  const grounds = room - (eventWidth ?? 0) - (agentWidth ?? 0) - (targetWidth ?? 0)
  const event = fit(eventOf(rec), eventWidth)
  const cells = [
    number,
    time,
    isColored ? colored(event, rec) : event,
    fit(agentOf(record).replace(DEFAULT, ''), agentWidth),
    fit(targetOf(rec), targetWidth),
    fit(groundsOf(rec).replace(DEFAULT, ''), grounds),
  ]
  return cells.join(GAP).trimEnd()
}

function colored(text: string, rec: SourceRecord['rec']): string {
  const color =
    rec.action === 'deny' ? 'red' : rec.kind === 'approval' ? 'yellow' : rec.result === 'completed' ? 'green' : null
  return color === null ? text : styleText(color, text, { validateStream: false })
}

function agentOf({ rec }: SourceRecord): string {
  return [rec.namespace, rec.agent].map(textOf).filter(Boolean).join('/')
}

/** Characters that take two columns of a terminal. */
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u

/** Cuts or pads a text to a number of columns. */
function fit(text: string, width = 0): string {
  const all = [...(text || '-')]
  const total = all.reduce((sum, one) => sum + widthOf(one), 0)
  if (total <= width) return text === '' ? '-'.padEnd(width) : text + ' '.repeat(width - total)
  let used = 0
  const visible = all.filter((one) => {
    used += widthOf(one)
    return used < width
  })
  const visibleWidth = visible.reduce((sum, one) => sum + widthOf(one), 0)
  return `${visible.join('')}…${' '.repeat(Math.max(0, width - visibleWidth - 1))}`
}

/** Combining marks have no width. */
function widthOf(character: string): number {
  if (/\p{Mark}/u.test(character)) return 0
  return WIDE.test(character) ? 2 : 1
}

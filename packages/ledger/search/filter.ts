import { searchFor } from '@plat/core'
import { REC_START } from '../format.ts'

/** Selects records; absent members select all. */
export interface RecordFilter {
  readonly namespace?: string
  readonly agent?: string
  readonly session?: string
  readonly user?: string
  readonly server?: string
  readonly tool?: string
  /** Id of a call, which refusals have as `decisionId`. */
  readonly call?: string
  readonly kind?: string
  /** Only refusals. */
  readonly denied?: boolean
  /** Only the ends of calls. */
  readonly calls?: boolean
  /** Occurs in the JSON of the record, with the same case. */
  readonly text?: string
}

/** Both must select a line: `matchesLine` rejects most lines before they are parsed, `matches` decides about the record. */
export interface Selector {
  matchesLine(line: Buffer): boolean
  matches(rec: Readonly<Record<string, unknown>>): boolean
}

/** Members that are compared with those of the record. */
export const FILTER_MEMBERS = ['namespace', 'agent', 'session', 'user', 'server', 'tool', 'call', 'kind'] as const

/** Bytes of a member that lines are searched for: the search of the engine may compare them at each byte. The record decides about the others. */
const MEMBER_BYTES = 64

/** Returns what selects the lines of records. A line has the members of its record as canonical JSON, so their bytes occur in it. */
export function selectorOf(filter: RecordFilter): Selector {
  const wanted = FILTER_MEMBERS.flatMap((name) => {
    const value = filter[name]
    return value === undefined ? [] : [{ name, value }]
  })
  const { denied = false, calls = false, text } = filter
  const pieces = wanted.map(({ name, value }) => `${JSON.stringify(name)}:${JSON.stringify(value)}`)
  if (denied) pieces.push('"action":"deny"')
  const needles = pieces.map((piece) => Buffer.from(piece).subarray(0, MEMBER_BYTES))
  const hasText = text === undefined ? null : textSearch(text)
  return {
    matchesLine: (line) =>
      needles.every((needle) => line.indexOf(needle, REC_START) !== -1) && (hasText === null || hasText(line)),
    matches: (rec) =>
      wanted.every(({ name, value }) => rec[name] === value) &&
      (!denied || rec.action === 'deny') &&
      (!calls || rec.kind === 'outcome' || rec.kind === 'decision'),
  }
}

/** Searches lines for a text as it is written within a string, a long one in time proportional to the line. */
function textSearch(text: string): (line: Buffer) => boolean {
  const written = Buffer.from(JSON.stringify(text).slice(1, -1))
  const begin = written.subarray(0, MEMBER_BYTES)
  if (begin.length === written.length) return (line) => line.indexOf(begin, REC_START) !== -1
  const search = searchFor(written.toString('latin1'))
  return (line) => line.indexOf(begin, REC_START) !== -1 && search(line.toString('latin1'), REC_START) !== -1
}

const UUID_V7 = /^([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
/** Clocks of two replicas may differ, in milliseconds. */
const CLOCK_SLACK_MS = 60_000

/** Returns the time in milliseconds before which there is no record of a call, from its id; null when the id does not say. */
export function earliestOf(call: string): number | null {
  const [, high = '', low = ''] = UUID_V7.exec(call) ?? []
  return high === '' ? null : Number.parseInt(high + low, 16) - CLOCK_SLACK_MS
}

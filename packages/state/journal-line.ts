import { crc32 } from 'node:zlib'

/**
 * One line of a journal file: the events of one append, which are all present or all absent.
 * `{"sum":"<8 hex>","seq":n,"version":n,"at":ms,"key":"…","snapshot":true|false,"events":[…]}` + LF; `sum` is the CRC-32 of the bytes after it up to
 * the closing brace. It detects accidents; tamper evidence is in the ledger.
 */
export interface JournalLine {
  /** Number of the first event. All events of a snapshot have the number up to which they replace the journal. */
  readonly seq: number
  /** Version of the key after the first event. */
  readonly version: number
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly key: string
  readonly snapshot: boolean
  readonly events: readonly unknown[]
}

const HEAD = '{"sum":"'
const SUM_DIGITS = 8
const BODY_START = HEAD.length + SUM_DIGITS + '",'.length

/** Formats the line, including LF. */
export function writeJournalLine({ seq, version, at, key, snapshot, events }: JournalLine): string {
  const body = JSON.stringify({ seq, version, at, key, snapshot, events }).slice(1)
  return `${HEAD}${sumOf(body)}",${body}\n`
}

/** Parses a line without its LF. Returns null when it is damaged. */
export function readJournalLine(text: string): JournalLine | null {
  const body = text.slice(BODY_START)
  if (!text.startsWith(HEAD) || text.slice(HEAD.length, BODY_START) !== `${sumOf(body)}",`) return null
  const value: unknown = JSON.parse(`{${body}`)
  if (typeof value !== 'object' || value === null) return null
  if (!('seq' in value && 'version' in value && 'at' in value && 'key' in value && 'events' in value)) return null
  const { seq, version, at, key, events } = value
  if (typeof seq !== 'number' || typeof version !== 'number' || typeof at !== 'number') return null
  if (typeof key !== 'string' || !Array.isArray(events)) return null
  return { seq, version, at, key, events, snapshot: 'snapshot' in value && value.snapshot === true }
}

function sumOf(body: string): string {
  return crc32(body).toString(16).padStart(SUM_DIGITS, '0')
}

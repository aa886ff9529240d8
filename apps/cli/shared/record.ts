import { plain } from './output.ts'

/** A record of the ledger as commands print it. */
export interface LedgerRecord {
  readonly seq: number
  readonly rec: Readonly<Record<string, unknown>>
}

/** Returns whether an item of the admin API is a record. */
export function isLedgerRecord(item: unknown): item is LedgerRecord {
  if (typeof item !== 'object' || item === null || !('seq' in item) || !('rec' in item)) return false
  return typeof item.seq === 'number' && typeof item.rec === 'object' && item.rec !== null
}

export function targetOf(rec: LedgerRecord['rec']): string {
  return [rec.server, rec.tool ?? rec.method].map(textOf).filter(Boolean).join('/')
}

/** Policy and rule of a record, else its subject. */
export function groundsOf(rec: LedgerRecord['rec']): string {
  return [rec.policy, rec.rule].map(textOf).filter(Boolean).join('#') || detailOf(rec)
}

/** The event of a record, in a word or two. */
export function eventOf(rec: LedgerRecord['rec']): string {
  const kind = textOf(rec.kind)
  if (kind === 'outcome') return textOf(rec.code) || textOf(rec.result)
  if (kind === 'decision') return `denied ${textOf(rec.code)}`
  if (kind === 'approval') return `approval ${textOf(rec.event)}`
  return kind
}

/** The subject of a record that does not belong to a call. */
function detailOf(rec: LedgerRecord['rec']): string {
  if (rec.kind === 'gap') return `${String(rec.count)} records missing: ${textOf(rec.reason)}`
  if (rec.kind === 'recovered' && rec.copySeq !== undefined)
    return `rebuilt from the copy up to record ${String(rec.copySeq)}: ${textOf(rec.reason)}`
  if (rec.kind === 'recovered') return `${String(rec.bytes)} bytes kept in ${textOf(rec.file)}`
  // Before a change is made its record has no status yet.
  if (rec.kind === 'admin')
    return [textOf(rec.action), ...(rec.status === undefined ? [] : [String(rec.status)])].join(' ')
  if (rec.kind === 'config') return `ledger ${textOf(rec.ledgerId)}`
  return rec.kind === 'checkpoint' ? `up to record ${String(rec.upTo)}` : textOf(rec.reason)
}

/** Hits of data-loss prevention in a record: detector, direction, action and how many. */
export function hitsOf({ dlp }: LedgerRecord['rec']): readonly Hits[] {
  return Array.isArray(dlp) ? dlp.filter(isHits) : []
}

interface Hits {
  readonly action: string
  readonly count: number
  readonly detector: string
  readonly direction: string
}

function isHits(value: unknown): value is Hits {
  if (typeof value !== 'object' || value === null || !('count' in value) || typeof value.count !== 'number')
    return false
  return ['action', 'detector', 'direction'].every((member) => typeof Reflect.get(value, member) === 'string')
}

/** Text from the ledger for a terminal; empty for anything else. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? plain(value) : ''
}

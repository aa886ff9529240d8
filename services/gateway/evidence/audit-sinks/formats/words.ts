import type { TailLine } from '@plat/ledger'

/** A record as sinks get it: its number, its hash, what it says, and its line. */
export type AuditRecord = TailLine

/** Writes a record as one text without a line feed. */
export type Format = (record: AuditRecord) => string

/** How much a record asks for attention. */
export type Level = 'information' | 'warning' | 'error'

/** A refusal, a revocation and an alert are warnings; that records were lost, or a ledger had to be mended, is an error. */
export function levelOf({ rec }: AuditRecord): Level {
  if (rec.kind === 'gap' || rec.kind === 'recovered') return 'error'
  if (rec.kind === 'alert' || rec.kind === 'revocation' || rec.action === 'deny') return 'warning'
  return 'information'
}

/** A member that is a text; null: there is none. */
export function textOf({ rec }: AuditRecord, member: string): string | null {
  const value = rec[member]
  return typeof value === 'string' && value !== '' ? value : null
}

/** A member that is a whole number; null: there is none. */
export function numberOf({ rec }: AuditRecord, member: string): number | null {
  const value = rec[member]
  return Number.isSafeInteger(value) ? Number(value) : null
}

/** When it happened, in milliseconds since the epoch. */
export function timeOf(record: AuditRecord): number {
  const time = Date.parse(textOf(record, 'at') ?? '')
  return Number.isNaN(time) ? 0 : time
}

/** One line for people: `outcome mcp.call notes/add_note: allow`. */
export function titleOf(record: AuditRecord): string {
  const of = (member: string) => textOf(record, member)
  const place = [of('server'), of('tool')].filter((part) => part !== null).join('/')
  const what = of('op') ?? of('alert') ?? of('event') ?? of('revocation')
  const said = of('action') ?? of('verdict')
  const words = [of('kind'), what, place].filter((word) => word !== null && word !== '').join(' ')
  return said === null ? words : `${words}: ${said}`
}

import type { TailLine } from '@plat/ledger'

/** A record for sinks: number, hash, members and ledger line. */
export type AuditRecord = TailLine

/** Formats a record as text without line feeds. */
export type Format = (record: AuditRecord) => string

/** Severity of a record. */
export type Level = 'information' | 'warning' | 'error'

/** Refusals, revocations and alerts are warnings; lost records and repaired ledgers are errors. */
export function levelOf({ rec }: AuditRecord): Level {
  if (rec.kind === 'gap' || rec.kind === 'recovered') return 'error'
  if (rec.kind === 'alert' || rec.kind === 'revocation' || rec.action === 'deny') return 'warning'
  return 'information'
}

export function textOf({ rec }: AuditRecord, member: string): string | null {
  const value = rec[member]
  return typeof value === 'string' && value !== '' ? value : null
}

export function numberOf({ rec }: AuditRecord, member: string): number | null {
  const value = rec[member]
  return Number.isSafeInteger(value) ? Number(value) : null
}

/** Time of the event, in milliseconds since the epoch. */
export function timeOf(record: AuditRecord): number {
  const time = Date.parse(textOf(record, 'at') ?? '')
  return Number.isNaN(time) ? 0 : time
}

/** Returns one line for people: `outcome mcp.call notes/add_note: allow`. */
export function titleOf(record: AuditRecord): string {
  const of = (member: string) => textOf(record, member)
  const place = [of('server'), of('tool')].filter((part) => part !== null).join('/')
  const what = of('op') ?? of('alert') ?? of('event') ?? of('revocation')
  const action = of('action') ?? of('verdict')
  const words = [of('kind'), what, place].filter((word) => word !== null && word !== '').join(' ')
  return action === null ? words : `${words}: ${action}`
}

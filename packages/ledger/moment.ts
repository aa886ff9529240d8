import { isObject } from '@plat/core'
import { seqOf } from './find.ts'

export interface LedgerLine {
  readonly seq: number
  readonly rec: Readonly<Record<string, unknown>>
  readonly [member: string]: unknown
}

/** A position in a ledger: a record number, or a time. */
export type LedgerMoment = number | { readonly at: string }

/** Returns whether a ledger line, without LF, is at or after a moment. */
export function isReached(line: Buffer, moment: LedgerMoment): boolean {
  if (typeof moment === 'number') return (seqOf(line) ?? -1) >= moment
  return timeOf(jsonOf(line)) >= moment.at
}

/** Returns whether a line is after a moment. */
export function isPast(line: LedgerLine, moment: LedgerMoment): boolean {
  return typeof moment === 'number' ? line.seq > moment : timeOf(line) > moment.at
}

/** RFC 3339 with six fractional digits, in UTC: such texts sort by time. */
function timeOf(line: LedgerLine | null): string {
  return typeof line?.rec.at === 'string' ? line.rec.at : ''
}

/** Parses a ledger line without LF. Returns null when it is malformed. */
export function jsonOf(text: Buffer): LedgerLine | null {
  try {
    const value: unknown = JSON.parse(text.toString())
    return isLine(value) ? value : null
  } catch {
    return null
  }
}

function isLine(value: unknown): value is LedgerLine {
  return isObject(value) && typeof value.seq === 'number' && isObject(value.rec)
}

import { rfc3339Micros } from '@plat/core'
import type { LedgerMoment, RecordFilter } from '@plat/ledger'
import { callerMembers } from '../shared/agent.ts'
import { CommandError } from '../shared/output.ts'
import { readTime } from '../shared/times.ts'

/** Flags that select records, as typed. */
export interface FilterFlags {
  /** `assistant`, or `default/assistant`. */
  readonly agent?: string
  /** `run-1`, or `default/assistant/run-1`. */
  readonly session?: string
  readonly user?: string
  readonly server?: string
  readonly tool?: string
  readonly decision?: string
  readonly denied?: boolean
  readonly calls?: boolean
  readonly text?: string
}

/** Maximum length of a text that a gateway searches for. */
const TEXT_MAX_CHARS = 256

/** Returns the filter of flags; undefined when none was given. */
export function filterOf(flags: FilterFlags): RecordFilter | undefined {
  const { user, server, tool, decision: call, denied, calls, text } = flags
  if (text !== undefined && (text === '' || text.length > TEXT_MAX_CHARS)) {
    throw new CommandError(`-text: give 1 to ${TEXT_MAX_CHARS} characters`, 2)
  }
  const members = { ...callerMembers(flags), user, server, tool, call, denied, calls, text }
  const given = Object.entries(members).filter(([, value]) => value !== undefined && value !== '')
  return given.length === 0 ? undefined : Object.fromEntries(given)
}

/** Reads a record number, a time (RFC 3339) or a time before now such as `24h`; undefined when it is not given. */
export function momentOf(text: string | undefined, flag: string, now: number): LedgerMoment | undefined {
  if (text === undefined) return undefined
  if (/^\d{1,15}$/.test(text)) return Number(text)
  const time = readTime(text, now)
  if (time !== null) return { at: rfc3339Micros(time) }
  throw new CommandError(`-${flag} ${text}: must be a record number, a time such as 2026-11-20T00:00:00Z, or 24h`, 2)
}

/** Reads a count of records. */
export function countOf(text: string, flag: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text)
  throw new CommandError(`-${flag} ${text}: give a whole number`, 2)
}

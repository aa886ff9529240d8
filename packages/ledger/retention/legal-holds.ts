import { readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { isObject, isSpiffeSegment } from '@plat/core'
import { isMissing } from '@plat/state'
import { jsonOf, type LedgerMoment } from '../moment.ts'
import { replaceText, syncFolder } from '../sequence/files.ts'
import type { LedgerSegment } from '../sequence/segment-entry.ts'

/** Records that must not leave: those of a session or an agent, or all of a range. */
export type HoldTarget =
  | { readonly session: string }
  | { readonly agent: string }
  | { readonly from: LedgerMoment; readonly to: LedgerMoment }

/** A legal hold: segments with records of its target are kept until it is released. */
export interface LegalHold {
  readonly id: string
  /** RFC 3339. */
  readonly at: string
  readonly by: string
  readonly reason: string
  readonly target: HoldTarget
}

/** The file of legal holds cannot be used: nothing may leave. */
class LegalHoldsError extends Error {}

/** Limit of legal holds of a ledger: each pass compares all of them. */
export const MAX_LEGAL_HOLDS = 1000

/** The form in which the ledger writes times, as far as it is given. */
const TIME = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d{1,6})?Z)?$/
const SEQ = /^\d{1,15}$/
/** An end of a range: a name that contains two dots has a slash, or a scope before it. */
const RANGE_END = /^\d[\dT:.Z-]*$/

/** File of legal holds beside a ledger. */
function legalHoldsPath(ledgerPath: string): string {
  return `${ledgerPath}.legal-holds.json`
}

/**
 * Parses `session:namespace/agent/id`, `agent:namespace/name` (without a namespace it is `default`) or `from..to` (two records, or two times). The
 * scope may be left out before a name with its namespace. Returns null when it is none of them.
 */
export function readHoldTarget(text: string): HoldTarget | null {
  const [from = '', to = '', ...more] = text.split('..')
  if (more.length === 0 && RANGE_END.test(from) && RANGE_END.test(to)) return rangeOf(from, to)
  const [, scope, name = ''] = /^(?:(agent|session):)?(.*)$/s.exec(text) ?? []
  const target = scope === 'agent' && !name.includes('/') ? `default/${name}` : name
  const names = target.split('/')
  // A session may have any name that its token can state.
  if (!names.every(isSpiffeSegment)) return null
  if (names.length === 3 && scope !== 'agent') return { session: target }
  return names.length === 2 && scope !== 'session' ? { agent: target } : null
}

function rangeOf(from: string, to: string): HoldTarget | null {
  if (SEQ.test(from) && SEQ.test(to)) return Number(from) <= Number(to) ? { from: Number(from), to: Number(to) } : null
  if (!TIME.test(from) || !TIME.test(to) || Number.isNaN(Date.parse(from)) || Number.isNaN(Date.parse(to))) return null
  // The ledger's times have six digits; a whole day ends with its last microsecond.
  const range = { from: { at: from }, to: { at: to.includes('T') ? to : `${to}T23:59:59.999999Z` } }
  return range.from.at <= range.to.at ? range : null
}

/** Returns a text that `readHoldTarget` parses, as files have it: without scope. */
export function textOfTarget(target: HoldTarget): string {
  if ('session' in target) return target.session
  if ('agent' in target) return target.agent
  return [target.from, target.to].map((moment) => (typeof moment === 'number' ? moment : moment.at)).join('..')
}

/** Returns the legal holds of a ledger in the order in which they were made. Throws LegalHoldsError when the file is malformed. */
export async function readLegalHolds(ledgerPath: string): Promise<readonly LegalHold[]> {
  const path = legalHoldsPath(ledgerPath)
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if (isMissing(error)) return null
    throw error
  })
  if (text === null) return []
  const value: unknown = parsed(text)
  const holds = isObject(value) && value.v === 1 && Array.isArray(value.holds) ? value.holds.map(readHold) : [null]
  const valid = holds.filter((hold) => hold !== null)
  if (valid.length < holds.length)
    throw new LegalHoldsError(`${path} is malformed: restore it from a copy; nothing leaves`)
  return valid
}

/** Durable when it resolves. One writer at a time. */
export async function writeLegalHolds(ledgerPath: string, holds: readonly LegalHold[]): Promise<void> {
  const written = holds.map(({ target, ...rest }) => ({ ...rest, target: textOfTarget(target) }))
  await replaceText(legalHoldsPath(ledgerPath), `${JSON.stringify({ v: 1, holds: written }, null, 1)}\n`)
  await syncFolder(dirname(ledgerPath))
}

function readHold(value: unknown): LegalHold | null {
  if (!isObject(value)) return null
  const { id, at, by, reason, target } = value
  if (typeof id !== 'string' || typeof at !== 'string' || typeof by !== 'string' || typeof reason !== 'string')
    return null
  const found = typeof target === 'string' ? readHoldTarget(target) : null
  return found === null ? null : { id, at, by, reason, target: found }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** Returns whether a range has records of a segment; false for other targets, for which its records have to be read. */
export function coversSegment(target: HoldTarget, segment: LedgerSegment): boolean {
  if (!('from' in target)) return false
  const { from, to } = target
  const begins = typeof from === 'number' ? from <= segment.last : from.at <= segment.to
  return begins && (typeof to === 'number' ? to >= segment.first : to.at >= segment.from)
}

/** Finds out which sessions and agents have records in lines. */
export class HoldSearch {
  readonly #wanted: ReadonlySet<string>
  readonly #found = new Set<string>()

  constructor(targets: readonly HoldTarget[]) {
    this.#wanted = new Set(targets.filter((target) => !('from' in target)).map(textOfTarget))
  }

  /** Targets with records, as text. */
  get found(): readonly string[] {
    return [...this.#found]
  }

  see(line: Buffer): void {
    if (this.#wanted.size === 0) return
    const { namespace, agent, session } = jsonOf(line)?.rec ?? {}
    for (const name of [`${namespace}/${agent}`, `${namespace}/${agent}/${session}`]) {
      if (this.#wanted.has(name)) this.#found.add(name)
    }
  }
}

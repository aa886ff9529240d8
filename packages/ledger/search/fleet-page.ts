import type { LedgerLine } from '../moment.ts'
import type { SourceFiles } from '../sequence/files.ts'
import { type LedgerQuery, ledgerPage, PAGE_BYTES } from './page.ts'

/** One of several ledgers that are read as one. */
export interface PagedLedger {
  readonly id: string
  readonly path: string
  /** Absent: the system's. */
  readonly files?: SourceFiles
}

/** For each ledger that has more records, the `seq` at which its next page begins, or ends when the newest are first. */
export type FleetCursor = ReadonlyMap<string, number>

export interface FleetPage {
  readonly items: readonly LedgerLine[]
  /** Null at the end. */
  readonly next: FleetCursor | null
}

/**
 * Returns records of several ledgers in the order of their times, as `ledgerPage` does of one. A page may have fewer items than requested, or none,
 * before the end: while one ledger was read without a result, later records of the others wait.
 */
export async function fleetPage(
  ledgers: readonly PagedLedger[],
  query: LedgerQuery,
  cursor: FleetCursor | null,
): Promise<FleetPage> {
  const { limit, newestFirst = false, bytes = PAGE_BYTES } = query
  // All ledgers together read what a page of one would.
  const share = Math.max(1, Math.floor(bytes / ledgers.length))
  const pages: Part[] = []
  for (const { id, path, files } of ledgers) {
    const at = cursor === null ? null : (cursor.get(id) ?? 'done')
    if (at === 'done') continue
    const range = at === null ? {} : newestFirst ? { to: at } : { from: at }
    pages.push({ id, ...(await ledgerPage(path, { ...query, ...range, bytes: share }, files)) })
  }
  const isBefore = (one: string, other: string) => (newestFirst ? one > other : one < other)
  const ends = pages.filter(({ next }) => next !== null).map(({ items }) => items.at(-1) ?? null)
  const isKnown = (line: LedgerLine) => ends.every((end) => end !== null && !isBefore(timeOf(end), timeOf(line)))
  const items = pages
    .flatMap((page) => page.items.map((line) => ({ line, page })))
    .filter(({ line }) => isKnown(line))
    .toSorted((one, other) => compare(one.line, other.line, isBefore))
    .slice(0, limit)
  const next = new Map<string, number>()
  for (const page of pages) {
    const returned = items.filter((one) => one.page === page).length
    const seq = page.items[returned]?.seq ?? page.next
    if (seq !== null) next.set(page.id, seq)
  }
  return { items: items.map(({ line }) => line), next: next.size === 0 ? null : next }
}

interface Part {
  readonly id: string
  readonly items: readonly LedgerLine[]
  readonly next: number | null
}

/** Records of one ledger stay in their order: the sort is stable. */
function compare(one: LedgerLine, other: LedgerLine, isBefore: (one: string, other: string) => boolean): number {
  const [at, otherAt] = [timeOf(one), timeOf(other)]
  return isBefore(at, otherAt) ? -1 : isBefore(otherAt, at) ? 1 : 0
}

function timeOf({ rec }: LedgerLine): string {
  return typeof rec.at === 'string' ? rec.at : ''
}

/** Longest cursor, in characters: some hundred ledgers. */
const CURSOR_MAX_CHARS = 16_384

export function writeFleetCursor(cursor: FleetCursor | null): string | null {
  return cursor === null ? null : Buffer.from(JSON.stringify([...cursor])).toString('base64url')
}

/** Returns null when the text is no cursor. */
export function readFleetCursor(text: string): FleetCursor | null {
  if (text.length > CURSOR_MAX_CHARS) return null
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'base64url').toString())
    return Array.isArray(value) && value.every(isEntry) ? new Map(value) : null
  } catch {
    return null
  }
}

function isEntry(value: unknown): value is readonly [string, number] {
  if (!Array.isArray(value) || value.length !== 2) return false
  const [id, seq] = value
  return typeof id === 'string' && typeof seq === 'number' && Number.isSafeInteger(seq) && seq >= 0
}

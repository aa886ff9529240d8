import { type FileHandle, open } from 'node:fs/promises'
import { isObject } from '@plat/core'
import { isMissing } from '@plat/state'
import { firstLine, seqOf } from './find.ts'
import { scanLines } from './lines.ts'
import { startOfLast } from './tail.ts'

/** Maximum bytes read for one page, so that a search without results ends. */
const PAGE_BYTES = 32 * 1024 * 1024

/** A ledger line as JSON. */
export interface LedgerLine {
  readonly seq: number
  readonly rec: Readonly<Record<string, unknown>>
  readonly [member: string]: unknown
}

/** A position in a ledger: a record number, or a time. */
export type LedgerMoment = number | { readonly at: string }

export interface LedgerQuery {
  /** The first record. A time is found as long as the ledger's clock was not set back. */
  readonly from: LedgerMoment
  /** The last record; null: that of the ledger. */
  readonly to: LedgerMoment | null
  readonly limit: number
  /** Selects records. */
  readonly wants: (rec: Readonly<Record<string, unknown>>) => boolean
}

export interface LedgerPage {
  readonly items: readonly LedgerLine[]
  /** `seq` at which the next page begins; null at the end. A page may have fewer items than requested, or none, before the end. */
  readonly next: number | null
}

/** Returns records of a ledger in order, found without an index and not verified. */
export async function ledgerPage(path: string, { from, to, limit, wants }: LedgerQuery): Promise<LedgerPage> {
  return await withFile(path, async (file) => {
    const start = await firstLine(file, (line) => isReached(line, from))
    const items: LedgerLine[] = []
    let next: number | null = null
    await scanLines(readerOf(file), {
      from: start,
      onLine(buffer, begin, end, offset) {
        const line = jsonOf(buffer.subarray(begin, end))
        if (line === null || (to !== null && isPast(line, to))) return false
        if (items.length === limit || offset - start >= PAGE_BYTES) {
          next = line.seq
          return false
        }
        if (wants(line.rec)) items.push(line)
        return true
      },
    })
    return { items, next }
  })
}

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

/** Returns lines of a checkpoints file, newest first: `limit` of those before record `before`, or of all. Empty when the file does not exist. */
export async function newestFirst(path: string, limit: number, before: number | null): Promise<LedgerPage> {
  try {
    return await withFile(path, async (file) => {
      const end = before === null ? undefined : await firstLine(file, (line) => (seqOf(line) ?? -1) >= before)
      const start = await startOfLast(file, limit, end)
      const items: LedgerLine[] = []
      await scanLines(readerOf(file), {
        from: start,
        onLine(buffer, begin, lineEnd, offset) {
          if (end !== undefined && offset >= end) return false
          const value = jsonOf(buffer.subarray(begin, lineEnd))
          if (value !== null) items.unshift(value)
          return items.length < limit
        },
      })
      return { items, next: start > 0 ? (items.at(-1)?.seq ?? null) : null }
    })
  } catch (error) {
    if (isMissing(error)) return { items: [], next: null }
    throw error
  }
}

async function withFile<T>(path: string, work: (file: FileHandle) => Promise<T>): Promise<T> {
  const file = await open(path, 'r')
  try {
    return await work(file)
  } finally {
    await file.close()
  }
}

function readerOf(file: FileHandle) {
  return {
    read: async (target: Uint8Array, position: number) =>
      (await file.read(target, 0, target.length, position)).bytesRead,
  }
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

import { type FileHandle, open } from 'node:fs/promises'
import { isMissing } from '@plat/state'
import { isObject } from '@plat/tokens'
import { firstLine, seqOf } from './find.ts'
import { scanLines } from './lines.ts'
import { startOfLast } from './tail.ts'

/** Bytes that one page may read, so that a search for what is not there ends. */
const PAGE_BYTES = 32 * 1024 * 1024

/** A ledger line as JSON. */
export interface LedgerLine {
  readonly seq: number
  readonly rec: Readonly<Record<string, unknown>>
  readonly [member: string]: unknown
}

/** A place in a ledger: the number of a record, or a time as records tell theirs. */
export type LedgerMoment = number | { readonly at: string }

export interface LedgerQuery {
  /** The first record. By a time it is found as long as the clock of the ledger was not set back. */
  readonly from: LedgerMoment
  /** The last record; null: the ledger's. */
  readonly to: LedgerMoment | null
  readonly limit: number
  /** Which records are wanted. */
  readonly wants: (rec: Readonly<Record<string, unknown>>) => boolean
}

export interface LedgerPage {
  readonly items: readonly LedgerLine[]
  /** The `seq` at which the next page begins; null at the end. A page may hold fewer items than asked for, and none, before the end. */
  readonly next: number | null
}

/** Records of a ledger in their order. They are found without an index and not verified. */
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

/** Whether a line of a ledger, without LF, stands at a moment or after it. */
export function isReached(line: Buffer, moment: LedgerMoment): boolean {
  if (typeof moment === 'number') return (seqOf(line) ?? -1) >= moment
  return timeOf(jsonOf(line)) >= moment.at
}

/** Whether a line stands after a moment. */
export function isPast(line: LedgerLine, moment: LedgerMoment): boolean {
  return typeof moment === 'number' ? line.seq > moment : timeOf(line) > moment.at
}

/** RFC 3339 with six digits of a second, in UTC: such texts are in the order of their times. */
function timeOf(line: LedgerLine | null): string {
  return typeof line?.rec.at === 'string' ? line.rec.at : ''
}

/** Lines of a file of checkpoints, the newest first: `limit` of those before record `before`, or of all. No file: none. */
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

/** A line of a ledger without LF; null: it is none. */
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

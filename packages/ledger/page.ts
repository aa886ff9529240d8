import { type FileHandle, open } from 'node:fs/promises'
import { isMissing } from '@plat/state'
import { isObject } from '@plat/tokens'
import { firstLine, seqOf } from './find.ts'
import { scanLines } from './lines.ts'
import { startOfLast } from './tail.ts'

/** Bytes that one page may read, so that a search for what is not there ends. */
const PAGE_BYTES = 32 * 1024 * 1024

/** A ledger line as JSON. */
export type LedgerLine = Readonly<Record<string, unknown>>

export interface LedgerQuery {
  /** The first record; 0 when absent. */
  readonly from?: number
  /** The last record. */
  readonly to?: number
  readonly limit: number
  /** Which records are wanted; all when absent. */
  readonly wants?: (rec: Readonly<Record<string, unknown>>) => boolean
}

export interface LedgerPage {
  readonly items: readonly LedgerLine[]
  /** The `seq` at which the next page begins; null at the end. A page may hold fewer items than asked for, and none, before the end. */
  readonly next: number | null
}

/** Records of a ledger in their order. They are found without an index and not verified. */
export async function ledgerPage(path: string, { from = 0, to, limit, wants }: LedgerQuery): Promise<LedgerPage> {
  return await withFile(path, async (file) => {
    const start = await firstLine(file, (line) => (seqOf(line) ?? -1) >= from)
    const items: LedgerLine[] = []
    let next: number | null = null
    await scanLines(readerOf(file), {
      from: start,
      onLine(buffer, begin, end, offset) {
        const line = buffer.subarray(begin, end)
        const seq = seqOf(line)
        if (seq === null || (to !== undefined && seq > to)) return false
        if (items.length === limit || offset - start >= PAGE_BYTES) {
          next = seq
          return false
        }
        const value = jsonOf(line)
        if (value !== null && isObject(value.rec) && wants?.(value.rec) !== false) items.push(value)
        return true
      },
    })
    return { items, next }
  })
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
      const oldest = items.at(-1)?.seq
      return { items, next: start > 0 && typeof oldest === 'number' ? oldest : null }
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

function jsonOf(line: Buffer): LedgerLine | null {
  try {
    const value: unknown = JSON.parse(line.toString())
    return isObject(value) ? value : null
  } catch {
    return null
  }
}

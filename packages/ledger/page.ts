import { type FileHandle, open } from 'node:fs/promises'
import { isMissing } from '@plat/state'
import { firstLine, readerOf, seqOf, startOfLast } from './find.ts'
import { scanLines } from './lines.ts'
import { isPast, jsonOf, type LedgerLine, type LedgerMoment } from './moment.ts'
import { scanPresent } from './sequence/scan.ts'
import { LedgerSequence } from './sequence/sequence.ts'

/** Maximum bytes read for one page, so that a search without results ends. */
const PAGE_BYTES = 32 * 1024 * 1024

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

/** Returns records of a ledger in order, found without an index and not verified. Segments that left are passed over. */
export async function ledgerPage(path: string, { from, to, limit, wants }: LedgerQuery): Promise<LedgerPage> {
  await using sequence = await LedgerSequence.open(path)
  const start = await sequence.startOf(from)
  const items: LedgerLine[] = []
  let next: number | null = null
  await scanPresent(sequence, {
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
}

/** Returns lines of a checkpoints file, newest first: `limit` of those before record `before`, or of all. Empty when the file does not exist. */
export async function newestFirst(path: string, limit: number, before: number | null): Promise<LedgerPage> {
  try {
    return await withFile(path, async (file) => {
      const source = readerOf(file)
      const all = { from: 0, to: (await file.stat()).size }
      const isEnd = (line: Buffer) => (seqOf(line) ?? -1) >= (before ?? 0)
      const end = before === null ? all.to : await firstLine(source, all, isEnd)
      const start = await startOfLast(source, limit, { from: 0, to: end })
      const items: LedgerLine[] = []
      await scanLines(source, {
        from: start,
        onLine(buffer, begin, lineEnd, offset) {
          if (offset >= end) return false
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

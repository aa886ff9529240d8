import { type FileHandle, open } from 'node:fs/promises'
import { isMissing } from '@plat/state'
import { firstLine, readerOf, seqOf, startOfLast } from '../find.ts'
import { scanLines } from '../lines.ts'
import { jsonOf, type LedgerLine, type LedgerMoment } from '../moment.ts'
import type { SourceFiles } from '../sequence/files.ts'
import { scanPresent } from '../sequence/scan.ts'
import { LedgerSequence } from '../sequence/sequence.ts'
import { scanBackward } from './scan-back.ts'

/** Maximum bytes read for one page, so that a search without results ends. */
export const PAGE_BYTES = 32 * 1024 * 1024

export interface LedgerQuery {
  /** The first record. A time is found as long as the ledger's clock was not set back. */
  readonly from: LedgerMoment
  /** The last record; null: that of the ledger. */
  readonly to: LedgerMoment | null
  readonly limit: number
  /** Selects records. */
  readonly wants: (rec: Readonly<Record<string, unknown>>) => boolean
  /** Rejects lines before they are parsed. */
  readonly wantsLine?: (line: Buffer) => boolean
  /** Begins with the last record. */
  readonly newestFirst?: boolean
  /** Maximum bytes read for one page; default: `PAGE_BYTES`. */
  readonly bytes?: number
}

export interface LedgerPage {
  readonly items: readonly LedgerLine[]
  /**
   * `seq` at which the next page begins, or ends when the newest are first; null at the end. A page may have fewer items than requested, or none,
   * before the end.
   */
  readonly next: number | null
}

/** Returns records of a ledger in order, found without an index and not verified. Segments that left are passed over. */
export async function ledgerPage(path: string, query: LedgerQuery, files?: SourceFiles): Promise<LedgerPage> {
  await using sequence = await LedgerSequence.open(path, files)
  const { found, next } = await readPage(sequence, query)
  return { items: found.map(({ line }) => line), next }
}

/** A record with the text of its line, without LF. */
interface FoundLine {
  readonly line: LedgerLine
  readonly text: string
}

/**
 * Yields the records that a query selects, page by page, with the text of their lines. `limit` is that of all pages. Throws on a malformed line, unless
 * the query rejects it.
 */
export async function* searchLedger(
  path: string,
  query: LedgerQuery,
): AsyncGenerator<LedgerLine & { readonly text: string }> {
  await using sequence = await LedgerSequence.open(path)
  let { from, to } = query
  for (let left = query.limit; left > 0; ) {
    const page = await readPage(sequence, { ...query, from, to, limit: Math.min(left, PAGE_RECORDS) })
    const { found, next, malformed } = page
    for (const { line, text } of found) yield { ...line, text }
    if (malformed !== null) {
      throw new Error(`${path}: byte ${malformed} begins no record; look with: plat audit verify ${path}`)
    }
    if (next === null) return
    left -= found.length
    if (query.newestFirst === true) to = next
    else from = next
  }
}

const PAGE_RECORDS = 1000

/** Records of one page. A malformed line, at this position, ends it. */
interface FoundPage {
  readonly found: readonly FoundLine[]
  readonly next: number | null
  readonly malformed: number | null
}

async function readPage(sequence: LedgerSequence, query: LedgerQuery): Promise<FoundPage> {
  const { from, to, limit, wants, wantsLine = () => true, newestFirst = false, bytes = PAGE_BYTES } = query
  const size = await sequence.size()
  const span = { from: await sequence.startOf(from), to: to === null ? size : await sequence.startOf(after(to)) }
  const found: FoundLine[] = []
  let next: number | null = null
  let malformed: number | null = null
  const see = (line: Buffer, offset: number): boolean => {
    const read = newestFirst ? span.to - offset - line.length - 1 : offset - span.from
    if (found.length === limit || read >= bytes) {
      next = seqOf(line)
      return false
    }
    if (!wantsLine(line)) return true
    const parsed = jsonOf(line)
    if (parsed === null) {
      malformed = offset
      return false
    }
    if (wants(parsed.rec)) found.push({ line: parsed, text: line.toString() })
    return true
  }
  if (newestFirst) {
    await scanBackward(sequence, span, see)
  } else {
    const onLine = (buffer: Buffer, start: number, end: number, offset: number) =>
      (to === null || offset < span.to) && see(buffer.subarray(start, end), offset)
    const rest = await scanPresent(sequence, { from: span.from, onLine })
    if (rest.tooLong) malformed = rest.offset
  }
  return { found, next, malformed }
}

/** Returns the moment right after one: no time of a record is between them. */
function after(moment: LedgerMoment): LedgerMoment {
  return typeof moment === 'number' ? moment + 1 : { at: `${moment.at}\0` }
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

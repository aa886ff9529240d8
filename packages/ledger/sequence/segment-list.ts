import { basename, dirname, join } from 'node:path'
import { isObject, LruCache } from '@plat/core'
import { lineAt, seqOf, startOfLast } from '../find.ts'
import type { SourceFile, SourceFiles } from './files.ts'
import { readSegmentLine } from './segment-record.ts'

/** A sealed segment of a ledger: a file that is no longer written. */
export interface LedgerSegment {
  /** `seq` of its first line. */
  readonly first: number
  /** `seq` of its last line, which is its `segment` record. */
  readonly last: number
  /** Size of its lines, which is that of the file unless it is compressed. */
  readonly bytes: number
  /** Times of its first and last record. */
  readonly from: string
  readonly to: string
  /** Its last line, without LF: head hash, root, tree and open calls at its end. */
  readonly record: string
  /** Line of a signed checkpoint that covers it, without LF; null as long as none is known. */
  readonly checkpoint: string | null
  /** Name of the file beside the ledger; null when it left. */
  readonly file: string | null
  /** Where it was archived before it left; null when it is here, or was deleted without an archive. */
  readonly archive: string | null
}

/** The sealed segments of a ledger, or their list, could not be read. */
export class SegmentListError extends Error {}

/** File with the list of sealed segments, rebuilt from the segments when it is missing. */
export function segmentsPath(ledgerPath: string): string {
  return `${ledgerPath}.segments.json`
}

const SEQ_DIGITS = 20
const SUFFIX = /^(\d{20})\.jsonl$/

/** Returns the path of the sealed segment that begins with record `first`. */
export function segmentPath(ledgerPath: string, first: number): string {
  return `${ledgerPath}.${String(first).padStart(SEQ_DIGITS, '0')}.jsonl`
}

/**
 * Returns the sealed segments of a ledger in order, from the list and from the files: a file that the list lacks is added, and a file that is there
 * has not left. Only sizes and places are trusted here; the chain is verified where it is read. Throws SegmentListError.
 */
export async function loadSegments(ledgerPath: string, files: SourceFiles): Promise<readonly LedgerSegment[]> {
  const [listed, names] = await Promise.all([
    listedIn(segmentsPath(ledgerPath), files),
    files.names(dirname(ledgerPath)),
  ])
  const byFirst = new Map(listed.map((segment) => [segment.first, segment]))
  const prefix = `${basename(ledgerPath)}.`
  for (const name of names) {
    const digits = name.startsWith(prefix) ? SUFFIX.exec(name.slice(prefix.length))?.[1] : undefined
    if (digits === undefined || byFirst.get(Number(digits))?.file === name) continue
    byFirst.set(Number(digits), await describeSegment(join(dirname(ledgerPath), name), Number(digits), files))
  }
  return [...byFirst.values()].sort((a, b) => a.first - b.first)
}

/** Lists that were read, by path. */
const lists = new LruCache<string, { readonly version: string; readonly segments: readonly LedgerSegment[] }>({
  maxEntries: 8,
})

/** Returns the content of the list; empty when it is missing. Reads it again only when it changed: pages of a large ledger open it for each request. */
async function listedIn(path: string, files: SourceFiles): Promise<readonly LedgerSegment[]> {
  // Before the text: a list that is replaced in between is read again.
  const version = await files.version(path)
  const known = lists.get(path)
  if (version !== null && known?.version === version) return known.segments
  const text = await files.text(path)
  const segments = text === null ? [] : readList(text, path)
  if (version !== null) lists.set(path, { version, segments })
  return segments
}

/** Returns the text of the list. */
export function writeList(segments: readonly LedgerSegment[]): string {
  return `${JSON.stringify({ v: 1, segments })}\n`
}

/** Reads first and last line of a sealed segment. Throws SegmentListError when it does not end with its `segment` record. */
async function describeSegment(path: string, first: number, files: SourceFiles): Promise<LedgerSegment> {
  const file = await files.open(path)
  if (file === null) throw new SegmentListError(`${path} was removed while the segments of the ledger were listed`)
  try {
    const bytes = await file.size()
    const begin = await lineAt(file, 0)
    const line = await lastLine(file, bytes)
    const record = line === null ? null : readSegmentLine(line)
    if (begin === null || line === null || record === null || record.first !== first || seqOf(begin) !== first) {
      throw new SegmentListError(
        `${path} is no sealed segment that begins with record ${first}: restore it from a copy, or move it away`,
      )
    }
    return {
      ...{ first, last: record.place.seq, bytes, from: timeOf(begin), to: timeOf(line), record: line.toString() },
      ...{ checkpoint: null, file: basename(path), archive: null },
    }
  } finally {
    await file.close()
  }
}

async function lastLine(file: SourceFile, bytes: number): Promise<Buffer | null> {
  return await lineAt(file, await startOfLast(file, 1, { from: 0, to: bytes }))
}

function timeOf(line: Buffer): string {
  const value: unknown = JSON.parse(line.toString())
  return isObject(value) && isObject(value.rec) && typeof value.rec.at === 'string' ? value.rec.at : ''
}

function readList(text: string, path: string): readonly LedgerSegment[] {
  const value = parsed(text)
  if (!isObject(value) || value.v !== 1 || !Array.isArray(value.segments)) throw malformed(path)
  return value.segments.map((one: unknown) => readEntry(one) ?? refuse(path))
}

function readEntry(value: unknown): LedgerSegment | null {
  if (!isObject(value)) return null
  const { first, last, bytes, from, to, record, checkpoint, file, archive } = value
  if (typeof from !== 'string' || typeof to !== 'string') return null
  if (typeof record !== 'string' || !isTextOrNull(checkpoint) || !isTextOrNull(archive)) return null
  // A list can name files beside the ledger only.
  if (!isTextOrNull(file) || (file !== null && file !== basename(file))) return null
  // The record is verified where it is used.
  if (!isSeq(first) || !isSeq(last) || last <= first || !isSeq(bytes)) return null
  return { first, last, bytes, from, to, record, checkpoint, file, archive }
}

function isSeq(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

function isTextOrNull(value: unknown): value is string | null {
  return value === null || typeof value === 'string'
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

function refuse(path: string): never {
  throw malformed(path)
}

function malformed(path: string): SegmentListError {
  return new SegmentListError(
    `${path} is malformed: restore it from a copy; or move it away, and it is rebuilt from the segments beside it`,
  )
}

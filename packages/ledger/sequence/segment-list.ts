import { basename, dirname, join } from 'node:path'
import { isObject, LruCache } from '@plat/core'
import { lastLine, lineAt, seqOf } from '../find.ts'
import { COMPRESSED, openSource } from './compressed-file.ts'
import type { SourceFiles } from './files.ts'
import { SegmentListError } from './segment-list-error.ts'
import { readSegmentLine } from './segment-record.ts'

export { SegmentListError }

/** A sealed segment of a ledger: a file that is no longer written. */
export interface LedgerSegment {
  /** `seq` of its first line. */
  readonly first: number
  /** `seq` of its last line, which is its `segment` record. */
  readonly last: number
  /** Size of its lines, which is that of the file unless it is compressed (`….jsonl.zst`). */
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
  /** Where a copy is archived; null when there is none. */
  readonly archive: string | null
  /** Time at which it left (RFC 3339); null when it never did. With a file as well, it was copied back. */
  readonly left: string | null
}

/** File with the list of sealed segments, rebuilt from the segments when it is missing. */
export function segmentsPath(ledgerPath: string): string {
  return `${ledgerPath}.segments.json`
}

const SEQ_DIGITS = 20
const SUFFIX = /^(\d{20})\.jsonl(\.zst)?$/

/** Returns the path of the sealed segment that begins with record `first`, as long as it is not compressed. */
export function segmentPath(ledgerPath: string, first: number): string {
  return `${ledgerPath}.${String(first).padStart(SEQ_DIGITS, '0')}.jsonl`
}

/** The sealed segments of a ledger in order. */
export interface LoadedSegments {
  readonly segments: readonly LedgerSegment[]
  /** The list has all of them: none had to be described from its file. */
  readonly isListed: boolean
}

/**
 * Returns the sealed segments of a ledger, from the list and from the files: a file that the list lacks is added, and a file that is there has not
 * left. Only sizes and places are trusted here; the chain is verified where it is read. Throws SegmentListError.
 */
export async function loadSegments(ledgerPath: string, files: SourceFiles): Promise<LoadedSegments> {
  const [listed, names] = await Promise.all([
    listedIn(segmentsPath(ledgerPath), files),
    files.names(dirname(ledgerPath)),
  ])
  const byFirst = new Map(listed.map((segment) => [segment.first, segment]))
  const here = filesOfSegments(basename(ledgerPath), names)
  let isListed = true
  for (const [first, found] of here) {
    const entry = byFirst.get(first)
    if (entry?.file !== undefined && entry.file !== null && found.includes(entry.file)) continue
    const segment = await findSegment({ folder: dirname(ledgerPath), first, found, files }, entry)
    if (segment === null) continue
    byFirst.set(first, segment)
    isListed = false
  }
  const segments = [...byFirst.values()].map((segment) =>
    // It was copied back, and removed again.
    segment.left !== null && segment.file !== null && !here.has(segment.first) ? { ...segment, file: null } : segment,
  )
  return { segments: segments.sort((a, b) => a.first - b.first), isListed }
}

/** Returns the names of the files of each segment, by `first`; the plain one before the compressed one. */
function filesOfSegments(ledgerName: string, names: readonly string[]): ReadonlyMap<number, readonly string[]> {
  const prefix = `${ledgerName}.`
  const found = new Map<number, readonly string[]>()
  for (const name of names.toSorted()) {
    const digits = name.startsWith(prefix) ? SUFFIX.exec(name.slice(prefix.length))?.[1] : undefined
    if (digits !== undefined) found.set(Number(digits), [...(found.get(Number(digits)) ?? []), name])
  }
  return found
}

interface FoundFiles {
  readonly folder: string
  readonly first: number
  /** Names of files with its lines, at least one. */
  readonly found: readonly string[]
  readonly files: SourceFiles
}

/**
 * Returns the segment of files of which the list has no name, or null when they are not it: a segment that left may be copied back just now, so its
 * file counts once it ends with the record that is listed.
 */
async function findSegment(
  { folder, first, found, files }: FoundFiles,
  entry: LedgerSegment | undefined,
): Promise<LedgerSegment | null> {
  // It was compressed or decompressed since the list was written.
  if (entry !== undefined && entry.left === null) return { ...entry, file: found[0] ?? null }
  for (const name of found) {
    try {
      const segment = await describeSegment(join(folder, name), first, files)
      if (entry === undefined) return segment
      if (segment.record === entry.record && segment.bytes === entry.bytes) return { ...entry, file: name }
    } catch (error) {
      if (entry === undefined && name === found.at(-1)) throw error
    }
  }
  return null
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
  const file = await openSource(path, files)
  if (file === null) throw new SegmentListError(`${path} was removed while the segments of the ledger were listed`)
  try {
    const bytes = await file.size()
    const begin = await lineAt(file, 0)
    const line = await lastLine(file, bytes)
    const record = line === null ? null : readSegmentLine(line)
    if (begin === null || line === null || record === null || record.first !== first || seqOf(begin) !== first) {
      throw new SegmentListError(
        `${path} is not a sealed segment that begins with record ${first}: restore it from a copy, or move it away`,
      )
    }
    return {
      ...{ first, last: record.place.seq, bytes, from: timeOf(begin), to: timeOf(line), record: line.toString() },
      ...{ checkpoint: null, file: basename(path), archive: null, left: null },
    }
  } finally {
    await file.close()
  }
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

/** A list can name sealed segments beside it only: their files are read, and removed when they left. A ledger that was renamed has their former names. */
function isSegmentName(file: string, first: number): boolean {
  const ending = segmentPath('', first)
  return file === basename(file) && (file.endsWith(ending) || file.endsWith(`${ending}${COMPRESSED}`))
}

function readEntry(value: unknown): LedgerSegment | null {
  if (!isObject(value)) return null
  const { first, last, bytes, from, to, record, checkpoint, file, archive, left = null } = value
  if (typeof from !== 'string' || typeof to !== 'string') return null
  if (typeof record !== 'string' || !isTextOrNull(checkpoint)) return null
  if (!isTextOrNull(archive) || !isTextOrNull(left)) return null
  // The record is verified where it is used.
  if (!isSeq(first) || !isSeq(last) || last <= first || !isSeq(bytes)) return null
  if (!isTextOrNull(file) || (file !== null && !isSegmentName(file, first))) return null
  return { first, last, bytes, from, to, record, checkpoint, file, archive, left }
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

import { basename, dirname, join } from 'node:path'
import { isObject, LruCache } from '@plat/core'
import { lastLine, lineAt, seqOf } from '../find.ts'
import { openSource } from './compressed-file.ts'
import type { SourceFiles } from './files.ts'
import { type LeftSegments, type LeftState, openLeft, readLeftState, textOfLeftState } from './left-segments.ts'
import { type LedgerSegment, type ListedSegment, readEntry, segmentsPath } from './segment-entry.ts'
import { SegmentListError } from './segment-list-error.ts'
import { readSegmentLine } from './segment-record.ts'

const SUFFIX = /^(\d{20})\.jsonl(\.zst)?$/

/** The sealed segments of a ledger. */
export interface LoadedSegments {
  /** Those that are here in order, and those that left a short time ago. */
  readonly segments: readonly LedgerSegment[]
  /** All others that left. */
  readonly left: LeftSegments
  /** The list has all of them: none had to be described from its file. */
  readonly isListed: boolean
}

/**
 * Returns the sealed segments of a ledger, from the list and from the files: a file that the list lacks is added, and a file that is there has not
 * left. Only sizes and places are trusted here; the chain is verified where it is read. Throws SegmentListError.
 */
export async function loadSegments(ledgerPath: string, files: SourceFiles): Promise<LoadedSegments> {
  const folder = dirname(ledgerPath)
  // The list is the later one: a segment gets its line in the other file first.
  const list = await listedIn(ledgerPath, files)
  const names = await files.names(folder)
  const { left, isListed: isLeftListed } = await openLeft({ ledgerPath, folder, files, names }, list.left)
  const byFirst = new Map(list.segments.map((segment) => [segment.first, segment]))
  const here = filesOfSegments(basename(ledgerPath), names)
  let isListed = isLeftListed
  for (const [first, found] of here) {
    const entry = byFirst.get(first)
    if (entry?.file !== undefined && entry.file !== null && found.includes(entry.file)) continue
    const known = entry ?? (await left.of(first)) ?? undefined
    const segment = await findSegment({ folder, first, found, files }, known)
    if (segment === null) continue
    byFirst.set(first, segment)
    isListed = false
  }
  const segments: ListedSegment[] = []
  for (const segment of byFirst.values()) {
    const one = await asItIs(segment, here.has(segment.first), left)
    if (one !== null) segments.push(one)
    else isListed = false
  }
  segments.sort((a, b) => a.first - b.first)
  return { segments: await placed(segments, left, segmentsPath(ledgerPath)), left, isListed }
}

/** Returns an entry of the list as its file is now; null when it is not the latest about its segment. */
async function asItIs(segment: ListedSegment, isHere: boolean, left: LeftSegments): Promise<ListedSegment | null> {
  if (isHere || segment.file === null) return segment
  // It was copied back, and removed again.
  if (segment.left !== null) return { ...segment, file: null }
  // An older list, from before it left.
  return (await left.of(segment.first)) === null ? segment : null
}

/** Adds the positions that the list does not state. Throws SegmentListError when stated ones cannot be. */
async function placed(
  segments: readonly ListedSegment[],
  left: LeftSegments,
  path: string,
): Promise<readonly LedgerSegment[]> {
  let [next, end] = [0, 0]
  const all: LedgerSegment[] = []
  for (const segment of segments) {
    const isNext = segment.first === next
    const before = isNext || segment.offset !== null ? null : await left.of(segment.first - 1)
    const offset = segment.offset ?? (before === null ? end : before.offset + before.bytes)
    const expected = left.state?.last === segment.first - 1 ? left.state.end : isNext ? end : null
    if (segment.first < next || offset < end || (expected !== null && offset !== expected)) throw malformed(path)
    all.push({ ...segment, offset })
    next = segment.last + 1
    end = offset + segment.bytes
  }
  return all
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
  entry: ListedSegment | undefined,
): Promise<ListedSegment | null> {
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
const lists = new LruCache<string, { readonly version: string; readonly list: List }>({ maxEntries: 8 })

/** Returns the content of the list; empty when it is missing. Reads it again only when it changed: pages of a large ledger open it for each request. */
async function listedIn(ledgerPath: string, files: SourceFiles): Promise<List> {
  const path = segmentsPath(ledgerPath)
  // Before the text: a list that is replaced in between is read again.
  const version = await files.version(path)
  const known = lists.get(path)
  if (version !== null && known?.version === version) return known.list
  const text = await files.text(path)
  const list = text === null ? { segments: [], left: null } : readList(text, ledgerPath)
  if (version !== null) lists.set(path, { version, list })
  return list
}

/** Returns the text of the list. Earlier versions read it as long as no segment left. */
export function writeList(segments: readonly LedgerSegment[], left: LeftState | null): string {
  const stated = textOfLeftState(left)
  return `${JSON.stringify(stated === null ? { v: 1, segments } : { v: 2, left: stated, segments })}\n`
}

/** Reads first and last line of a sealed segment. Throws SegmentListError when it does not end with its `segment` record. */
async function describeSegment(path: string, first: number, files: SourceFiles): Promise<ListedSegment> {
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
      ...{ first, last: record.place.seq, bytes, offset: null, from: timeOf(begin), to: timeOf(line) },
      record: line.toString(),
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

/** The content of a list. */
interface List {
  readonly segments: readonly ListedSegment[]
  /** State of the file of segments that left; null when none did. */
  readonly left: LeftState | null
}

function readList(text: string, ledgerPath: string): List {
  const path = segmentsPath(ledgerPath)
  const value = parsed(text)
  if (!isObject(value) || !Array.isArray(value.segments)) throw malformed(path)
  const left = value.v === 2 ? readLeftState(value.left, ledgerPath) : null
  if (value.v === 2 ? left === null : value.v !== 1) throw malformed(path)
  return { left, segments: value.segments.map((one: unknown) => readEntry(one) ?? refuse(path)) }
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

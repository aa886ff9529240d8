import { existsSync } from 'node:fs'
import { copyFile, open, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { lockPath } from '@plat/state'
import { lineAt, seqOf } from '../find.ts'
import { readRawLine } from '../format.ts'
import { COMPRESSED, openSource } from '../sequence/compressed-file.ts'
import { asyncFiles, type SourceFile, syncFolder } from '../sequence/files.ts'
import { type LedgerSegment, segmentPath } from '../sequence/segment-entry.ts'
import { SegmentListError } from '../sequence/segment-list-error.ts'
import { readSegmentLine } from '../sequence/segment-record.ts'
import { LedgerSequence } from '../sequence/sequence.ts'
import { verifySegment } from '../sequence/verify-segment.ts'

/** Result of restoring a sealed segment. */
export interface RestoredSegment {
  /** `seq` of its first and last record. */
  readonly first: number
  readonly last: number
  /** Its file. */
  readonly path: string
  /** Where the damaged file is kept; null when the segment had none, or a valid one. */
  readonly aside: string | null
  /** The file is what was sealed: nothing was changed. */
  readonly wasValid: boolean
}

/** The copy is not the segment, or nothing states what the segment is. */
export class RestoreError extends Error {}

/**
 * Replaces the file of a sealed segment of the ledger at `path` by `copy`, a plain or compressed (`.zst`) file of its lines, if it is what was sealed:
 * chain and root as its `segment` record states them, between the records before and after it. The damaged file is kept under another name; a sealed
 * segment is never cut. Throws RestoreError, and LockedError while a gateway writes the ledger.
 */
export async function restoreSegment(path: string, copy: string): Promise<RestoredSegment> {
  const unlock = lockPath(path)
  try {
    await using sequence = await LedgerSequence.open(path)
    const first = await firstRecordOf(copy)
    const segment = await sequence.segmentOf(first)
    if (segment?.first !== first) throw new RestoreError(`no sealed segment of ${path} begins with record ${first}`)
    const before = await sequence.segmentOf(first - 1)
    await refuseWrongRecord(sequence, segment)
    const place = { first, last: segment.last }
    const now = segment.file === null ? null : join(dirname(path), segment.file)
    if (now !== null && (await problemOf(now, segment, before)) === null) {
      return { ...place, path: now, aside: null, wasValid: true }
    }
    const ending = copy.endsWith(COMPRESSED) ? COMPRESSED : ''
    const target = `${segmentPath(path, first)}${ending}`
    const unfinished = `${segmentPath(path, first)}.restoring${ending}`
    try {
      await copyDurably(copy, unfinished)
      // The file that was verified is the one that gets the name.
      const problem = await problemOf(unfinished, segment, before)
      if (problem !== null) throw new RestoreError(`${copy} is not what was sealed: ${problem}`)
      const aside = now === null ? null : await setAside(now)
      await rename(unfinished, target)
      await syncFolder(dirname(path))
      return { ...place, path: target, aside, wasValid: false }
    } finally {
      await rm(unfinished, { force: true })
    }
  } finally {
    unlock()
  }
}

async function firstRecordOf(copy: string): Promise<number> {
  const found = await withSource(copy, async (source) => await lineAt(source, 0))
  const first = found === null ? null : seqOf(found)
  if (first === null) throw new RestoreError(`${copy} does not begin with a record of a ledger`)
  return first
}

/** The list alone is not believed: the record after the segment contains the hash of its `segment` record. */
async function refuseWrongRecord(sequence: LedgerSequence, segment: LedgerSegment): Promise<void> {
  const stated = readSegmentLine(Buffer.from(segment.record))
  const next = sequence.parts.findLast(({ first }) => first <= segment.last + 1)
  if (stated === null || next === undefined) {
    throw new RestoreError(
      `the list of segments has no valid segment record of records ${segment.first} to ${segment.last}`,
    )
  }
  if (next.leftUpTo !== null) return
  // An active file without a record contradicts nothing.
  if (next.segment === null && (await sequence.size()) === next.offset) return
  const line = await lineAt(sequence, next.offset)
  const raw = line === null ? 'it is empty' : readRawLine(line, 0, line.length)
  if (typeof raw === 'string' || raw.prev !== stated.place.hash) {
    throw new RestoreError(
      `${next.path} does not follow the segment record ${segment.last} that the list states: if it is damaged, restore that file first`,
    )
  }
}

/** Returns why a file is not this segment; null when it is. */
async function problemOf(path: string, segment: LedgerSegment, before: LedgerSegment | null): Promise<string | null> {
  try {
    return await withSource(path, async (source) => {
      const size = await source.size()
      if (size !== segment.bytes) return `it has ${size} bytes instead of ${segment.bytes}`
      return await verifySegment(source, segment, before)
    })
  } catch (error) {
    if (error instanceof SegmentListError || error instanceof RestoreError) return error.message
    throw error
  }
}

async function withSource<T>(path: string, work: (source: SourceFile) => Promise<T>): Promise<T> {
  const source = await openSource(path, asyncFiles)
  if (source === null) throw new RestoreError(`${path} does not exist`)
  try {
    return await work(source)
  } finally {
    await source.close()
  }
}

const FILE_MODE = 0o600

async function copyDurably(from: string, to: string): Promise<void> {
  await copyFile(from, to)
  await using file = await open(to, 'r+')
  await file.chmod(FILE_MODE)
  await file.sync()
}

/** Renames a damaged file to `<file>.damaged`, unread: it may be unreadable. Returns that path; null when the segment has no file. */
async function setAside(path: string): Promise<string | null> {
  const aside = `${path}.damaged`
  // A crash of an earlier repair may have occurred between this rename and the next one.
  if (!existsSync(path)) return existsSync(aside) ? aside : null
  if (existsSync(aside))
    throw new RestoreError(`${aside} is from an earlier repair: move it away and keep it as evidence`)
  await rename(path, aside)
  return aside
}

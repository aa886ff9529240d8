import { rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Files, isMissing } from '@plat/state'
import { syncFolder } from '../sequence/files.ts'
import type { LedgerSegment } from '../sequence/segment-entry.ts'
import type { ListKeeper } from '../writer/sealing/list-keeper.ts'

export interface Leaving {
  readonly ledgerPath: string
  readonly list: ListKeeper
  /** Null for the system's. */
  readonly files: Files | null
}

/** Content of the list about a segment that leaves. */
export interface Departure {
  /** Where its copy is; null when it has none. */
  readonly archive: string | null
  /** Line of a signed checkpoint that covers it. */
  readonly checkpoint: string
  /** RFC 3339. */
  readonly left: string
}

/**
 * Removes the file of a segment. First the list says durably that it left, where it is archived and by which checkpoint it is covered: after a crash
 * it is here, or listed as left, and `removeLeftovers` completes it.
 */
export async function leave(
  leaving: Leaving,
  segment: LedgerSegment,
  { archive, checkpoint, left }: Departure,
): Promise<void> {
  await leaving.list.change((segments) =>
    segments.map((one) => (one.first === segment.first ? { ...one, archive, checkpoint, left } : one)),
  )
  await removeFile(leaving, segment)
  await leaving.list.update()
}

/** Completes what a crash left undone: removes files of segments that left, except those that were copied back later. */
export async function removeLeftovers(leaving: Leaving, segments: readonly LedgerSegment[]): Promise<void> {
  for (const segment of segments) {
    if (segment.left === null || segment.file === null) continue
    const changed = await changedAt(join(dirname(leaving.ledgerPath), segment.file), leaving.files)
    if (changed !== null && changed <= Date.parse(segment.left)) await removeFile(leaving, segment)
  }
}

/** Returns the time at which a file got its place, in milliseconds, which no copy can set; null when it does not exist. */
async function changedAt(path: string, files: Files | null): Promise<number | null> {
  if (files !== null) return files.exists(path) ? 0 : null
  try {
    return (await stat(path)).ctimeMs
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
}

async function removeFile({ ledgerPath, files }: Leaving, { file }: LedgerSegment): Promise<void> {
  const path = join(dirname(ledgerPath), file ?? '')
  if (files !== null) {
    files.remove(path)
    return
  }
  await rm(path, { force: true })
  await syncFolder(dirname(path))
}

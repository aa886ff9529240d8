import { isObject } from '@plat/core'
import type { LedgerSegment } from '../sequence/segment-entry.ts'
import { SegmentListError } from '../sequence/segment-list-error.ts'
import { readSegmentLine, treeAfter } from '../sequence/segment-record.ts'
import { type StoredCheckpoint, treePath } from './stored-checkpoint.ts'
import { MerkleTree, type TreeState } from './tree.ts'
import type { TreeFile } from './tree-file.ts'

/** State of a resumed tree, and the hashes that the ledger must confirm while it grows. */
export interface ResumedTree {
  /** Number of leaves from which it grows. */
  readonly size: number
  /** Hash of the record before, when the tree began with what its `segment` record states; null otherwise. */
  readonly after: string | null
  /** A checkpoint over records that are added again; null when there is none. */
  readonly expected: { readonly size: number; readonly root: string } | null
}

/**
 * Resumes the tree at the last checkpoint, else at the last `segment` record that its file matches. Without either it begins with the first record, or
 * after the last segment that left, with the full subtrees that its `segment` record states: no node below them is needed for records after it.
 * Throws SegmentListError.
 */
export function resumeTree(
  ledgerPath: string,
  tree: TreeFile,
  { segments, last }: { readonly segments: readonly LedgerSegment[]; readonly last: StoredCheckpoint | null },
): ResumedTree {
  const stated = rootIn(last?.rec)
  if (stated !== null && tree.resume(stated.size, stated.root))
    return { size: stated.size, after: null, expected: null }
  for (const segment of segments.toReversed()) {
    const end = endOf(segment)
    if (end !== null && tree.resume(end.state.size, new MerkleTree(end.state).root())) {
      return { size: end.state.size, after: null, expected: stated }
    }
    if (segment.file !== null) continue
    if (end === null) {
      throw new SegmentListError(
        `${treePath(ledgerPath)} cannot be rebuilt: the list of sealed segments states a wrong record for that of record ${segment.first}, which left: restore both files from a copy`,
      )
    }
    tree.restart(end.state)
    return { size: end.state.size, after: end.hash, expected: stated ?? coveringRoot(segment) }
  }
  tree.restart({ size: 0, subtrees: [] })
  return { size: 0, after: null, expected: stated }
}

function endOf({ record, first, last }: LedgerSegment): { readonly state: TreeState; readonly hash: string } | null {
  const line = Buffer.from(record)
  const read = readSegmentLine(line)
  if (read === null || read.first !== first || read.place.seq !== last) return null
  return { state: treeAfter(read, line), hash: read.place.hash }
}

/** Returns what the checkpoint in the list states, by which the segment was allowed to leave. */
function coveringRoot({ checkpoint }: LedgerSegment): ResumedTree['expected'] {
  const value: unknown = JSON.parse(checkpoint ?? 'null')
  return isObject(value) && isObject(value.rec) ? rootIn(value.rec) : null
}

function rootIn(rec: Readonly<Record<string, unknown>> | undefined): ResumedTree['expected'] {
  const { size, root } = rec ?? {}
  return typeof size === 'number' && typeof root === 'string' ? { size, root } : null
}

import { isObject, type JsonObject } from '@plat/core'
import { scanLines } from '../lines.ts'
import type { SourceFiles } from '../sequence/files.ts'
import { readSegmentLine, treeAfter } from '../sequence/segment-record.ts'
import { LedgerSequence } from '../sequence/sequence.ts'
import { nodeCount, placesOfPath, subtreePlaces } from './inclusion.ts'
import { type NoReceipt, type Receipt, receiptOf } from './receipt.ts'
import { isCheckpointLine } from './stored-checkpoint.ts'
import { MerkleTree, type TreeState } from './tree.ts'

/**
 * Returns the receipt of record `seq` of a ledger without files beside it, under the first checkpoint that covers it. Reads from the segment of the record
 * to that checkpoint. Throws when the ledger contradicts the checkpoint, and ArchivedError.
 */
export async function receiptOfCopy(path: string, files: SourceFiles, seq: number): Promise<Receipt | NoReceipt> {
  await using sequence = await LedgerSequence.open(path, files)
  const found = await sequence.lineOf(seq)
  if (found === null) return 'no record'
  const checkpoint = await firstCheckpoint(sequence, found.position, seq)
  if (checkpoint === null) return 'no checkpoint'
  const { size, rec } = checkpoint
  const start = stateBefore(sequence, seq)
  const needed = placesOfPath(seq, size)
  const nodes = new Map<number, Buffer>()
  for (const [index, place] of subtreePlaces(start.size).entries()) {
    const node = start.subtrees[index]
    if (node !== undefined && needed.has(place)) nodes.set(place, node)
  }
  let place = nodeCount(start.size)
  const tree = new MerkleTree(start, (node) => {
    if (needed.has(place)) nodes.set(place, node)
    place++
  })
  await scanLines(sequence, {
    from: await sequence.startOf(start.size),
    onLine(buffer, begin, end) {
      if (tree.size === size) return false
      tree.addLine(buffer.subarray(begin, end))
      return true
    },
  })
  return receiptOf(seq, found.line, rec, (at) => nodes.get(at) ?? Buffer.alloc(0))
}

/** Returns the tree at the end of the last sealed segment before a record. */
function stateBefore(sequence: LedgerSequence, seq: number): TreeState {
  const segment = sequence.segments.findLast(({ last }) => last < seq)
  const record = segment === undefined ? null : readSegmentLine(Buffer.from(segment.record))
  return segment === undefined || record === null
    ? { size: 0, subtrees: [] }
    : treeAfter(record, Buffer.from(segment.record))
}

async function firstCheckpoint(
  sequence: LedgerSequence,
  from: number,
  seq: number,
): Promise<{ readonly size: number; readonly rec: JsonObject } | null> {
  let found: { size: number; rec: JsonObject } | null = null
  await scanLines(sequence, {
    from,
    onLine(buffer, start, end) {
      const line = buffer.subarray(start, end)
      if (!isCheckpointLine(line)) return true
      const value: unknown = JSON.parse(line.toString())
      const rec = isObject(value) && isObject(value.rec) ? value.rec : {}
      if (typeof rec.size !== 'number' || rec.size <= seq) return true
      found = { size: rec.size, rec }
      return false
    },
  })
  return found
}

import type { JsonObject } from '@plat/core'
import { readRawLine } from '../format.ts'
import type { ScanOptions } from '../lines.ts'
import { isPast, jsonOf, type LedgerMoment } from '../moment.ts'
import { isLogAnchor } from '../proof/anchor.ts'
import { inclusionPath, rootOfPath } from '../proof/inclusion.ts'
import { treePath } from '../proof/stored-checkpoint.ts'
import { leafHash } from '../proof/tree.ts'
import { TreeFile } from '../proof/tree-file.ts'
import { scanPresent } from '../sequence/scan.ts'
import { type LedgerSegment, startsAfter } from '../sequence/segment-entry.ts'
import { ArchivedError, LedgerSequence } from '../sequence/sequence.ts'
import type { RunProof } from './object.ts'

/** Selects the records of an evidence object. */
export interface EvidenceQuery {
  readonly from: LedgerMoment
  /** Null: up to the checkpoint. */
  readonly to: LedgerMoment | null
  readonly wants: (rec: JsonObject) => boolean
  /** Record of a checkpoint made after all selected records. */
  readonly checkpoint: JsonObject
  /** Maximum bytes of all lines and proofs together. */
  readonly maxBytes: number
}

/** Selected records with their proofs. */
export interface Gathered {
  readonly from: number
  readonly to: number
  readonly lines: readonly Buffer[]
  readonly proofs: readonly RunProof[]
  /** Checkpoint of the proofs: an anchored one that covers all of them if there is one, else the one of the query. */
  readonly checkpoint: JsonObject
  readonly anchor: JsonObject | null
}

/** Why nothing was gathered: no such records, or more than `maxBytes`, at this record. */
export type NotGathered = { readonly why: 'none' } | { readonly why: 'too much'; readonly seq: number }

interface Wanted {
  readonly seq: number
  readonly line: Buffer
}

interface Scanned extends Pick<Gathered, 'from' | 'to' | 'anchor'> {
  readonly wanted: readonly Wanted[]
  readonly bytes: number
}

const ANCHOR_MARK = Buffer.from('"kind":"anchor"')

/** Gathers records of a ledger in use, with the files beside it. Throws when they do not match the ledger. */
export async function gatherEvidence(path: string, query: EvidenceQuery): Promise<Gathered | NotGathered> {
  await using sequence = await LedgerSequence.open(path)
  const found = await scan(sequence, query)
  if (!('wanted' in found)) return found
  const { anchor } = found
  const last = found.wanted.at(-1)?.seq ?? 0
  const covers = anchor !== null && typeof anchor.size === 'number' && last < anchor.size
  const anchored = covers ? await recordAt(sequence, Number(anchor.checkpoint)) : null
  const checkpoint = anchored ?? query.checkpoint
  const proofs = prove(path, found.wanted, checkpoint)
  const bytes = found.bytes + JSON.stringify(proofs).length
  if (bytes > query.maxBytes) return { why: 'too much', seq: last }
  const { from, to } = found
  return { from, to, lines: found.wanted.map(({ line }) => line), proofs, checkpoint, anchor: anchored && anchor }
}

/**
 * One pass: the range first, and the records after it up to the checkpoint for an anchor only, without segments that left.
 * @throws ArchivedError when a segment of the range left
 */
async function scan(
  sequence: LedgerSequence,
  { from, to, wants, checkpoint, maxBytes }: EvidenceQuery,
): Promise<Scanned | NotGathered> {
  const wanted: Wanted[] = []
  const upTo = Number(checkpoint.upTo)
  let [bytes, first, last] = [0, -1, -1]
  let isIn = true
  let tooMuch = false
  const anchors: JsonObject[] = []
  const isAfterRange = (segment: LedgerSegment) => segment.first > upTo || (to !== null && startsAfter(segment, to))
  const options: ScanOptions = {
    from: await sequence.startOf(from),
    onLine(buffer, start, end) {
      const text = buffer.subarray(start, end)
      const isAnchor = text.includes(ANCHOR_MARK)
      if (!isIn && !isAnchor) return true
      const line = jsonOf(text)
      if (line === null) throw new Error('the ledger has a line that is not a record; look with: plat audit verify')
      if (isAnchor && isLogAnchor(line.rec)) anchors.push(line.rec)
      isIn &&= line.seq <= upTo && (to === null || !isPast(line, to))
      if (!isIn) return true
      if (first === -1) first = line.seq
      last = line.seq
      if (!wants(line.rec)) return true
      wanted.push({ seq: line.seq, line: Buffer.from(text) })
      bytes += text.length + 1
      tooMuch = bytes > maxBytes
      return !tooMuch
    },
  }
  await scanPresent(sequence, options, isAfterRange)
  if (tooMuch) return { why: 'too much', seq: last } as const
  if (wanted.length === 0) return { why: 'none' } as const
  return { wanted, bytes, from: first, to: last, anchor: anchors.at(-1) ?? null }
}

/** Returns a record; null when it does not exist, or its segment left. */
async function recordAt(sequence: LedgerSequence, seq: number): Promise<JsonObject | null> {
  const found = await sequence.lineOf(seq).catch((error: unknown) => {
    if (error instanceof ArchivedError) return null
    throw error
  })
  return found === null ? null : (jsonOf(found.line)?.rec ?? null)
}

/** A line proves all directly preceding ones, since it contains the hash of its predecessor: one path per unbroken run is enough. */
function prove(path: string, wanted: readonly Wanted[], checkpoint: JsonObject): readonly RunProof[] {
  const size = Number(checkpoint.size)
  const tree = new TreeFile(treePath(path), 'readOnly')
  try {
    const ends = wanted.filter(({ seq }, at) => wanted[at + 1]?.seq !== seq + 1)
    return ends.map(({ seq, line }) => {
      const inclusion = inclusionPath(tree.node, seq, size)
      const raw = readRawLine(Buffer.from(line), 0, line.length)
      if (typeof raw === 'string' || rootOfPath(leafHash(line), seq, size, inclusion) !== checkpoint.root) {
        throw new Error(`record ${seq} is not included under the root of the checkpoint; look with: plat audit verify`)
      }
      return { seq, inclusion: inclusion.map((hash) => hash.toString('hex')) }
    })
  } finally {
    tree.close()
  }
}

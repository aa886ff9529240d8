import { isObject } from '@plat/core'
import { type Head, readRawLine } from '../format.ts'
import { fullSubtrees, MerkleTree, type TreeState } from '../proof/tree.ts'
import type { Rec } from '../types.ts'

/** Maximum number of open calls that one record names; with more, `open` records before the `segment` record name all of them. */
export const MAX_OPEN_CALLS_NAMED = 10_000

/** Content of the last record of a sealed segment, kind `segment`: what it closes. */
export interface SegmentRecord {
  readonly ledgerId: string
  /** `seq` of the segment's first record. */
  readonly first: number
  /** Last record before this one. */
  readonly closed: Head
  /** State of the RFC 6962 tree over all records of the ledger up to `closed`. */
  readonly tree: TreeState
  /**
   * `seq` of each intent without an outcome so far, in order. A start finds lost calls without reading earlier segments. When they are too many for one
   * record: the first of the `open` records that name them, which reach up to `closed`.
   */
  readonly open: readonly number[] | { readonly from: number }
}

/** A `segment` record with its place in the chain. */
export interface SegmentLine extends SegmentRecord {
  readonly place: Head
}

export function segmentRecord({ ledgerId, first, closed, tree, open }: SegmentRecord): Rec {
  return {
    kind: 'segment',
    ledgerId,
    first,
    last: closed.seq,
    head: closed.hash,
    size: tree.size,
    root: rootOf(tree),
    subtrees: tree.subtrees.map((hash) => hash.toString('hex')),
    ...('from' in open ? { openFrom: open.from } : { open }),
  }
}

/** Occurs in every line of a `segment` record; cannot occur inside a string. */
const MARK = Buffer.from('"kind":"segment"')
const HASH = /^[0-9a-f]{64}$/

/** Parses the line of a `segment` record, without LF, and verifies its hash and its root. Returns null when it is another record or malformed. */
export function readSegmentLine(line: Buffer): SegmentLine | null {
  if (!line.includes(MARK)) return null
  const raw = readRawLine(Buffer.from(line), 0, line.length)
  if (typeof raw === 'string') return null
  const value: unknown = JSON.parse(line.toString())
  const rec = isObject(value) && isObject(value.rec) ? value.rec : {}
  const { kind, ledgerId, first, last, head, size, root, subtrees, open, openFrom } = rec
  if (kind !== 'segment' || typeof ledgerId !== 'string' || typeof head !== 'string' || !HASH.test(head)) return null
  if (!isSeq(first) || last !== raw.seq - 1 || size !== raw.seq || first > last || raw.prev !== head) return null
  if (!Array.isArray(subtrees) || subtrees.length !== fullSubtrees(size).length) return null
  if (!subtrees.every((hash) => typeof hash === 'string' && HASH.test(hash))) return null
  const calls = readOpen(open, openFrom, last)
  if (calls === null) return null
  const tree = { size, subtrees: subtrees.map((hash) => Buffer.from(String(hash), 'hex')) }
  if (rootOf(tree) !== root) return null
  return {
    ledgerId,
    first,
    closed: { seq: last, hash: head },
    tree,
    open: calls,
    place: { seq: raw.seq, hash: raw.hash },
  }
}

function readOpen(open: unknown, from: unknown, last: number): SegmentRecord['open'] | null {
  if (open === undefined) return isSeq(from) && from > 0 && from <= last ? { from } : null
  return from === undefined && Array.isArray(open) && open.every(isSeq) ? open : null
}

/** Returns the state of the tree after a `segment` record: the tree that it states and its own line. */
export function treeAfter({ tree }: SegmentRecord, line: Buffer): TreeState {
  const grown = new MerkleTree(tree)
  grown.addLine(line)
  return grown.state()
}

function rootOf(tree: TreeState): string {
  return new MerkleTree(tree).root()
}

function isSeq(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

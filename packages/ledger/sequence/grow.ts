import type { Head } from '../format.ts'
import { type ReadAt, scanLines } from '../lines.ts'
import { MerkleTree, type TreeState } from '../proof/tree.ts'

/** The tree over all records before an offset of a file. */
export interface GrownTree {
  readonly tree: TreeState
  readonly offset: number
}

/** Records to add to a tree: those of a file from an offset up to `to`. */
export interface Growth {
  readonly path: string
  readonly from: GrownTree
  readonly to: Head
}

/** Returns the tree over all records up to `to`. Rejects when the file does not hold that record. */
export type GrowTree = (growth: Growth) => Promise<GrownTree>

/** State of a tree as a message between threads. */
export interface TreeMessage {
  readonly size: number
  readonly subtrees: readonly string[]
}

/** A `GrownTree` as a message between threads. */
export interface GrownMessage {
  readonly tree: TreeMessage
  readonly offset: number
}

/** A `Growth` as a message between threads. */
export interface GrowthMessage extends Omit<Growth, 'from'> {
  readonly from: GrownMessage
}

/** Reads and hashes `source`, the file of the growth. */
export async function growTree(source: ReadAt, { path, from, to }: Growth): Promise<GrownTree> {
  const tree = new MerkleTree(from.tree)
  let last = ''
  const { offset } = await scanLines(source, {
    from: from.offset,
    onLine(buffer, start, end) {
      if (tree.size > to.seq) return false
      const line = buffer.subarray(start, end)
      tree.addLine(line)
      if (tree.size > to.seq) last = line.toString('latin1', HASH_START, HASH_END)
      return true
    },
  })
  if (tree.size !== to.seq + 1 || last !== to.hash) {
    throw new Error(`${path} no longer holds record ${to.seq} as it was written`)
  }
  return { tree: tree.state(), offset }
}

/** Offset of the hash in a line: after `{"hash":"`. */
const HASH_START = 9
const HASH_END = HASH_START + 64

export function messageOf({ size, subtrees }: TreeState): TreeMessage {
  return { size, subtrees: subtrees.map((hash) => hash.toString('hex')) }
}

export function stateOf({ size, subtrees }: TreeMessage): TreeState {
  return { size, subtrees: subtrees.map((hash) => Buffer.from(hash, 'hex')) }
}

export function grownMessage({ tree, offset }: GrownTree): GrownMessage {
  return { tree: messageOf(tree), offset }
}

export function grownOf({ tree, offset }: GrownMessage): GrownTree {
  return { tree: stateOf(tree), offset }
}

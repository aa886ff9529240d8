import { fullSubtrees, HASH_BYTES, joinHashes, MerkleTree, type TreeState } from './tree.ts'

/** A node that is final, by its place in the order in which `MerkleTree` makes them. */
export type ReadNode = (place: number) => Buffer

/** How many nodes a tree of `size` leaves has made: all of its full subtrees, each with everything below it. */
export function nodeCount(size: number): number {
  return fullSubtrees(size).reduce((sum, { level }) => sum + 2 ** (level + 1) - 1, 0)
}

/** The place of the node `index` of `level` (0: the leaves): it comes right after the last leaf below it and the lower nodes above that leaf. */
function placeOf(level: number, index: number): number {
  return nodeCount((index + 1) * 2 ** level - 1) + level
}

/** The tree as it was with `size` leaves, from its nodes. */
export function treeAt(read: ReadNode, size: number): TreeState {
  return { size, subtrees: fullSubtrees(size).map(({ level, index }) => read(placeOf(level, index))) }
}

/** The root of the first `size` leaves, 64 hex digits. */
export function rootAt(read: ReadNode, size: number): string {
  return new MerkleTree(treeAt(read, size)).root()
}

/** The hashes that lead from leaf `index` to the root of the first `size` leaves, from below (RFC 6962, section 2.1.1). */
export function inclusionPath(read: ReadNode, index: number, size: number): Buffer[] {
  return pathIn(read, index, 0, size)
}

/** The places of the nodes that the path of leaf `index` is made of, so that they can be kept while the leaves come by. */
export function placesOfPath(index: number, size: number): ReadonlySet<number> {
  const places = new Set<number>()
  const anything = Buffer.alloc(HASH_BYTES)
  const note = (place: number) => {
    places.add(place)
    return anything
  }
  inclusionPath(note, index, size)
  return places
}

function pathIn(read: ReadNode, index: number, from: number, size: number): Buffer[] {
  if (size === 1) return []
  const left = leftOf(size)
  return index < from + left
    ? [...pathIn(read, index, from, left), rootIn(read, from + left, size - left)]
    : [...pathIn(read, index, from + left, size - left), rootIn(read, from, left)]
}

/** The root of `size` leaves from leaf `from` on, which stand as the left part of a tree does: the full ones at their places. */
function rootIn(read: ReadNode, from: number, size: number): Buffer {
  const level = Math.log2(size)
  if (Number.isInteger(level)) return read(placeOf(level, from / size))
  const left = leftOf(size)
  return joinHashes(rootIn(read, from, left), rootIn(read, from + left, size - left))
}

/** The largest power of two below `size`, which is at least 2. */
function leftOf(size: number): number {
  return 2 ** (Math.ceil(Math.log2(size)) - 1)
}

/** What `path` makes of a leaf: the root of a tree of `size` leaves; null when the path does not fit such a tree. */
export function rootOfPath(leaf: Buffer, index: number, size: number, path: readonly Buffer[]): string | null {
  if (index < 0 || index >= size) return null
  let node = leaf
  let [at, last] = [index, size - 1]
  for (const sibling of path) {
    if (last === 0) return null
    if (at % 2 === 1 || at === last) {
      node = joinHashes(sibling, node)
      // A last node without a right neighbour stands for itself on the levels above, until it is a right one.
      while (at % 2 === 0) [at, last] = [at / 2, Math.floor(last / 2)]
    } else {
      node = joinHashes(node, sibling)
    }
    ;[at, last] = [Math.floor(at / 2), Math.floor(last / 2)]
  }
  return last === 0 ? node.toString('hex') : null
}

import { fullSubtrees, HASH_BYTES, joinHashes, MerkleTree, type TreeState } from './tree.ts'

/** Reads a final node by its index in the order of `MerkleTree`. */
export type ReadNode = (place: number) => Buffer

/** Returns the number of final nodes of a tree of `size` leaves: all of its full subtrees with their descendants. */
export function nodeCount(size: number): number {
  return fullSubtrees(size).reduce((sum, { level }) => sum + 2 ** (level + 1) - 1, 0)
}

/** Returns the index of node `index` of `level` (0: the leaves): right after its last leaf and the lower nodes above that leaf. */
function placeOf(level: number, index: number): number {
  return nodeCount((index + 1) * 2 ** level - 1) + level
}

/** Returns the indexes of the full subtrees of a tree of `size` leaves, from the left. */
export function subtreePlaces(size: number): readonly number[] {
  return fullSubtrees(size).map(({ level, index }) => placeOf(level, index))
}

/** Returns the state of the tree with `size` leaves, from its nodes. */
export function treeAt(read: ReadNode, size: number): TreeState {
  return { size, subtrees: subtreePlaces(size).map(read) }
}

/** Returns the root of the first `size` leaves, 64 hex digits. */
export function rootAt(read: ReadNode, size: number): string {
  return new MerkleTree(treeAt(read, size)).root()
}

/** Returns the hashes from leaf `index` to the root of the first `size` leaves, bottom up (RFC 6962, section 2.1.1). */
export function inclusionPath(read: ReadNode, index: number, size: number): Buffer[] {
  return pathIn(read, index, 0, size)
}

/** Returns the indexes of the nodes on the path of leaf `index`, so that they can be kept while leaves are added. */
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

/** Returns the root of `size` leaves from leaf `from` on, which are the left part of a tree. */
function rootIn(read: ReadNode, from: number, size: number): Buffer {
  const level = Math.log2(size)
  if (Number.isInteger(level)) return read(placeOf(level, from / size))
  const left = leftOf(size)
  return joinHashes(rootIn(read, from, left), rootIn(read, from + left, size - left))
}

/** Returns the largest power of two below `size`, which is at least 2. */
function leftOf(size: number): number {
  return 2 ** (Math.ceil(Math.log2(size)) - 1)
}

/** Returns the root that `path` computes from a leaf in a tree of `size` leaves; null when the path does not fit such a tree. */
export function rootOfPath(leaf: Buffer, index: number, size: number, path: readonly Buffer[]): string | null {
  if (index < 0 || index >= size) return null
  let node = leaf
  let [at, last] = [index, size - 1]
  for (const sibling of path) {
    if (last === 0) return null
    if (at % 2 === 1 || at === last) {
      node = joinHashes(sibling, node)
      // A last node without a right sibling moves up until it is a right sibling.
      while (at % 2 === 0) [at, last] = [at / 2, Math.floor(last / 2)]
    } else {
      node = joinHashes(node, sibling)
    }
    ;[at, last] = [Math.floor(at / 2), Math.floor(last / 2)]
  }
  return last === 0 ? node.toString('hex') : null
}

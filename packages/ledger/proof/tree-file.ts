import { OwnedFile } from '@plat/state'
import { nodeCount, rootAt, subtreePlaces, treeAt } from './inclusion.ts'
import { HASH_BYTES, MerkleTree, type TreeState } from './tree.ts'

/** Bytes of nodes buffered before a write. */
const HELD_BYTES = 256 * 1024

/**
 * The tree of a ledger with all nodes in a file, 32 bytes each in the order in which they become final: 64 bytes per record. It can resume from any
 * earlier size, and any node is one read.
 */
export class TreeFile {
  readonly #file: OwnedFile
  #tree = new MerkleTree()
  #held: Buffer[] = []

  /** `readOnly`: for reading nodes beside a writer. */
  constructor(path: string, mode: 'write' | 'readOnly' = 'write') {
    this.#file = OwnedFile.open(path, mode === 'write' ? 'a+' : 'r')
  }

  /** Resumes from `size` leaves. Returns false, and changes nothing, when the file does not have them with this root. */
  resume(size: number, root: string): boolean {
    const bytes = nodeCount(size) * HASH_BYTES
    if (this.#file.size() < bytes || rootAt(this.node, size) !== root) return false
    this.#file.truncate(bytes)
    this.#grow(treeAt(this.node, size))
    return true
  }

  /** Begins again from a state, of which only the full subtrees are known: the file has holes in place of the nodes below them. */
  restart(state: TreeState): void {
    this.#file.truncate(0)
    for (const [index, place] of subtreePlaces(state.size).entries()) {
      this.#file.truncate(place * HASH_BYTES)
      this.#file.writeAll(state.subtrees[index] ?? Buffer.alloc(0))
    }
    this.#grow(state)
  }

  get size(): number {
    return this.#tree.size
  }

  root(): string {
    return this.#tree.root()
  }

  /** Adds the leaf of a line, without its LF. */
  addLine(line: Uint8Array): void {
    this.#tree.addLine(line)
    if (this.#held.length * HASH_BYTES >= HELD_BYTES) this.#write()
  }

  /** Returns when all nodes are on disk. */
  sync(): void {
    this.#write()
    this.#file.datasync()
  }

  /** Reads a node by its index. Throws when the file has none there. */
  readonly node = (place: number): Buffer => {
    const hash = Buffer.alloc(HASH_BYTES)
    if (this.#file.read(hash, place * HASH_BYTES) !== HASH_BYTES) {
      throw new Error(`the tree has no node ${place}`)
    }
    return hash
  }

  close(): void {
    this.#file.close()
  }

  #grow(from: TreeState): void {
    this.#tree = new MerkleTree(from, (node) => this.#held.push(node))
  }

  #write(): void {
    const bytes = Buffer.concat(this.#held)
    this.#held = []
    this.#file.writeAll(bytes)
  }
}

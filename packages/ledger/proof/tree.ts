import { hash } from 'node:crypto'

const LEAF = 0x00
const NODE = 0x01
const HASH_BYTES = 32

/** Leaf of a ledger line (without its LF): SHA-256(0x00 ‖ line), RFC 6962 section 2.1. */
export function leafHash(line: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(line.length + 1)
  bytes[0] = LEAF
  bytes.set(line, 1)
  return hash('sha256', bytes, 'buffer')
}

/** The RFC 6962 tree over the lines of a ledger, of which only the roots of its full subtrees are kept: one hash for each bit of its size. */
export class MerkleTree {
  readonly #subtrees: Buffer[] = []
  readonly #pair = Buffer.alloc(1 + 2 * HASH_BYTES, NODE)
  #size = 0

  get size(): number {
    return this.#size
  }

  add(leaf: Buffer): void {
    let node = leaf
    for (let rest = this.#size; rest % 2 === 1; rest = (rest - 1) / 2) {
      node = this.#join(this.#subtrees.pop() ?? node, node)
    }
    this.#subtrees.push(node)
    this.#size++
  }

  /** 64 hex digits. The root of no lines is the hash of nothing. */
  root(): string {
    const root = this.#subtrees.reduceRight<Buffer | null>(
      (right, left) => (right === null ? left : this.#join(left, right)),
      null,
    )
    return root === null ? hash('sha256', '', 'hex') : root.toString('hex')
  }

  #join(left: Buffer, right: Buffer): Buffer {
    this.#pair.set(left, 1)
    this.#pair.set(right, 1 + HASH_BYTES)
    return hash('sha256', this.#pair, 'buffer')
  }
}

import { HASH_BYTES } from '../proof/tree.ts'

/** Kinds of records that state the head or the root of a ledger. An anchor or a `segment` record alone proves nothing about it. */
export type ClaimKind = 'checkpoint' | 'anchor' | 'segment'

/** Claim of a record or of a checkpoint kept elsewhere about the first `size` records of a ledger, and its source. */
export interface Claim {
  readonly ledgerId: string
  readonly size: number
  /** 64 hex digits each. A note has no head, and a head kept beside the ledger no root. */
  readonly head: string | null
  readonly root: string | null
  /** Record that contains the claim; null for a checkpoint kept elsewhere. */
  readonly seq: number | null
  readonly signed: boolean
  readonly kind: ClaimKind
  /** Description of a source outside the ledger; null for a kept checkpoint, or a record of the ledger. */
  readonly source: string | null
}

const SIGNED = 1
const ANCHOR = 2
const HAS_HEAD = 4
const HAS_ROOT = 8
const SEGMENT = 16
const KIND_FLAGS = { checkpoint: 0, anchor: ANCHOR, segment: SEGMENT } as const
/** `seq` of a checkpoint kept elsewhere. */
const KEPT = -1
const FIRST_ROWS = 1024

/**
 * Claims of a ledger in columns: about 90 bytes each, a fifth of an object with its strings. They are read in the order of the records that they
 * bind.
 */
export class ClaimTable {
  /** Few ledgers occur: each id is stored once. */
  readonly #ledgerIds: string[] = []
  readonly #ledgerIndexes = new Map<string, number>()
  #rows = 0
  #sizes = new Float64Array(FIRST_ROWS)
  #seqs = new Float64Array(FIRST_ROWS)
  #ledgers = new Uint32Array(FIRST_ROWS)
  /** By row; few claims have one. */
  readonly #sources = new Map<number, string>()
  #flags = new Uint8Array(FIRST_ROWS)
  #hashes = Buffer.alloc(2 * HASH_BYTES * FIRST_ROWS)
  /** Rows by size, built for the first read. */
  #order: Uint32Array | null = null
  #next = 0

  get rows(): number {
    return this.#rows
  }

  add({ ledgerId, size, head, root, seq, signed, kind, source }: Claim): void {
    if (this.#rows === this.#sizes.length) this.#grow()
    const row = this.#rows++
    this.#order = null
    this.#sizes[row] = size
    this.#seqs[row] = seq ?? KEPT
    this.#ledgers[row] = this.#ledgerIndex(ledgerId)
    this.#flags[row] =
      (signed ? SIGNED : 0) | KIND_FLAGS[kind] | (head === null ? 0 : HAS_HEAD) | (root === null ? 0 : HAS_ROOT)
    if (head !== null) this.#hashes.write(head, 2 * HASH_BYTES * row, 'hex')
    if (source !== null) this.#sources.set(row, source)
    if (root !== null) this.#hashes.write(root, 2 * HASH_BYTES * row + HASH_BYTES, 'hex')
  }

  /** Returns the claims that bind exactly `size` records, in the order of `add`. Caller must read by increasing size. */
  bySize(size: number): Iterable<Claim> {
    this.#order ??= this.#sorted()
    const row = this.#order[this.#next]
    // Nearly every record: no generator is created.
    return row === undefined || (this.#sizes[row] ?? 0) > size ? NO_CLAIMS : this.#upTo(size, this.#order)
  }

  /** Returns all claims, in the order of `add`. */
  *all(): Generator<Claim> {
    for (let row = 0; row < this.#rows; row++) yield this.#claim(row)
  }

  *#upTo(size: number, order: Uint32Array): Generator<Claim> {
    for (let row = order[this.#next]; row !== undefined; row = order[this.#next]) {
      const rowSize = this.#sizes[row] ?? 0
      if (rowSize > size) return
      this.#next++
      if (rowSize === size) yield this.#claim(row)
    }
  }

  #claim(row: number): Claim {
    const flags = this.#flags[row] ?? 0
    const seq = this.#seqs[row] ?? KEPT
    const at = 2 * HASH_BYTES * row
    return {
      ledgerId: this.#ledgerIds[this.#ledgers[row] ?? 0] ?? '',
      size: this.#sizes[row] ?? 0,
      head: (flags & HAS_HEAD) !== 0 ? this.#hashes.toString('hex', at, at + HASH_BYTES) : null,
      root: (flags & HAS_ROOT) !== 0 ? this.#hashes.toString('hex', at + HASH_BYTES, at + 2 * HASH_BYTES) : null,
      seq: seq === KEPT ? null : seq,
      signed: (flags & SIGNED) !== 0,
      kind: (flags & ANCHOR) !== 0 ? 'anchor' : (flags & SEGMENT) !== 0 ? 'segment' : 'checkpoint',
      source: this.#sources.get(row) ?? null,
    }
  }

  #sorted(): Uint32Array {
    const sizes = this.#sizes
    const order = Uint32Array.from({ length: this.#rows }, (_, row) => row)
    // Checkpoints of a ledger mostly arrive in the order of the records they cover.
    if (order.every((row) => row === 0 || (sizes[row - 1] ?? 0) <= (sizes[row] ?? 0))) return order
    return order.sort((one, other) => (sizes[one] ?? 0) - (sizes[other] ?? 0) || one - other)
  }

  #ledgerIndex(id: string): number {
    const known = this.#ledgerIndexes.get(id)
    if (known !== undefined) return known
    this.#ledgerIndexes.set(id, this.#ledgerIds.length)
    return this.#ledgerIds.push(id) - 1
  }

  #grow(): void {
    const rows = 2 * this.#rows
    const { length } = this.#hashes
    this.#sizes = copied(this.#sizes, new Float64Array(rows))
    this.#seqs = copied(this.#seqs, new Float64Array(rows))
    this.#ledgers = copied(this.#ledgers, new Uint32Array(rows))
    this.#flags = copied(this.#flags, new Uint8Array(rows))
    this.#hashes = Buffer.concat([this.#hashes, Buffer.alloc(length)])
  }
}

const NO_CLAIMS: readonly Claim[] = []

function copied<T extends { set(from: T): void }>(from: T, to: T): T {
  to.set(from)
  return to
}

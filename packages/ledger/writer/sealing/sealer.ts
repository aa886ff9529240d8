import { type Clock, reasonOf } from '@plat/core'
import type { Head } from '../../format.ts'
import { leafHash, MerkleTree, type TreeState } from '../../proof/tree.ts'
import type { GrownTree, GrowTree } from '../../sequence/grow.ts'
import { openCallRecords } from '../../sequence/open-call-records.ts'
import { segmentRecord } from '../../sequence/segment-record.ts'
import type { Rec } from '../../types.ts'
import { SMALL_FILE_BYTES } from './grow-file.ts'
import type { OpenIntents } from './open-intents.ts'

/** When the active file of a ledger is sealed. */
export interface SealingLimits {
  /** Sealed once it has this size. */
  readonly bytes: number
  /** Sealed once its first record has this age; 0: at any age. */
  readonly seconds: number
}

export interface FileStart {
  /** `seq` of its first record. */
  readonly first: number
  /** The tree over all records before it. */
  readonly tree: TreeState
}

export interface SealerOptions {
  readonly path: string
  readonly ledgerId: string
  readonly limits: SealingLimits
  readonly clock: Clock
  readonly grow: GrowTree
  /** Called when nothing is hashed any more. */
  readonly onClose: () => void
  readonly intents: OpenIntents
  /** Called when the `segment` record can be made. */
  readonly onReady: () => void
  /** Called when the segment could not be hashed; another attempt follows. */
  readonly onFault: (reason: string) => void
}

/** Time before another attempt, in milliseconds. */
const RETRY_MS = 10_000
/** Durable records that are added to the tree at once, while the file is active. */
const STEP_RECORDS = 4096

/**
 * Decides when the active file is sealed, and computes the root for its `segment` record. With a large limit durable records are hashed from the file,
 * step by step while it is active. When it is due, only the last step is missing, and only records that get their place meanwhile are hashed here.
 * With a small limit each record is hashed when it gets its place: the root is known at once, so the file is sealed at its limit.
 */
export class Sealer {
  readonly #options: SealerOptions
  #start: FileStart = { first: 0, tree: { size: 0, subtrees: [] } }
  #bytes = 0
  #last: Head | null = null
  /** Last durable record of the file; null without one. */
  #durable: Head | null = null
  /** The tree over the first records of the file; they are durable. */
  #grown: GrownTree = { tree: this.#start.tree, offset: 0 }
  /** The next step begins when there are enough records after this one. */
  #stepAfter = -1
  /** Last record that is hashed from the file; null while the file is not due. */
  #target: Head | null = null
  #isGrowing = false
  /** Leaves of the records after `#target`, until the tree up to it is known. */
  #leaves: Buffer[] = []
  /** The tree over all placed records; null until it is known. */
  #tree: MerkleTree | null = null
  /** The last records of the file were made. */
  #isEnded = false
  /** Changes when results of the other thread become void. */
  #round = 0
  #isOld = false
  #notBefore = 0
  #cancelTimer: (() => void) | null = null

  constructor(options: SealerOptions) {
    this.#options = options
  }

  /** Called before records of another file, or of the same one after a failure. `last`: the last record in the file, or null. */
  begin(start: FileStart, bytes: number, last: Head | null): void {
    // Durable records of the same file do not change.
    if (start.first !== this.#start.first || this.#grown.tree.size === 0) this.#grown = { tree: start.tree, offset: 0 }
    this.#start = start
    this.#bytes = bytes
    this.#last = last
    this.#durable = last
    this.#stepAfter = last?.seq ?? start.first - 1
    this.#isOld = false
    this.#cancelTimer?.()
    this.#cancelTimer = null
    this.#reset()
    this.#isEnded = false
    if (this.#options.limits.bytes <= SMALL_FILE_BYTES) {
      if (last === null) this.#tree = new MerkleTree(start.tree)
      else this.#plan(last)
    }
    if (last !== null) this.#watchAge()
  }

  /** Called with each record that gets its place, and its line in `buffer`, without LF. */
  placed(head: Head, buffer: Buffer, { start, end }: { readonly start: number; readonly end: number }): void {
    this.#bytes += end - start + 1
    this.#last = head
    if (this.#tree !== null) this.#tree.add(leafHash(buffer.subarray(start, end)))
    else if (this.#target !== null) this.#leaves.push(leafHash(buffer.subarray(start, end)))
    if (this.#cancelTimer === null) this.#watchAge()
    if (this.#isDue) this.#sealSoon(head)
  }

  /** Called when the records up to this one are durable. */
  durable(head: Head): void {
    // Called for the last records of the file before as well.
    if (head.seq < this.#start.first) return
    this.#durable = head
    if (this.#target !== null || head.seq - this.#stepAfter >= STEP_RECORDS) this.#grow()
  }

  /**
   * Ends the file: passes its last records to `place`, which gives them their places at once. These are `open` records when more calls are open than
   * the `segment` record can name, and then that record. Returns the start of the next file, or null when the root is not known now.
   */
  end(place: (rec: Rec) => void): FileStart | null {
    const { ledgerId, intents } = this.#options
    if (this.#tree === null || this.#last === null) return null
    const { first } = this.#start
    this.#isEnded = true
    const seqs = intents.seqs()
    const records = openCallRecords(seqs)
    const open = records.length === 0 ? seqs : { from: this.#last.seq + 1 }
    for (const rec of records) place(rec)
    place(segmentRecord({ ledgerId, first, closed: this.#last, tree: this.#tree.state(), open }))
    return { first: this.#last.seq + 1, tree: this.#tree.state() }
  }

  close(): void {
    this.#cancelTimer?.()
    this.#reset()
    this.#options.onClose()
  }

  #reset(): void {
    this.#round++
    this.#target = null
    this.#tree = null
    this.#leaves = []
    this.#isGrowing = false
  }

  get #isDue(): boolean {
    return this.#bytes >= this.#options.limits.bytes || this.#isOld
  }

  /** Reports that the root is known, or has it computed. Called again for each record until the file is sealed. */
  #sealSoon(last: Head): void {
    if (this.#tree === null) this.#plan(last)
    else if (!this.#isEnded) this.#options.onReady()
  }

  #plan(head: Head): void {
    if (this.#target !== null) return
    if (this.#options.clock.now() < this.#notBefore) return
    this.#target = head
    this.#grow()
  }

  #watchAge(): void {
    const { limits, clock } = this.#options
    if (limits.seconds === 0) return
    this.#cancelTimer = clock.after(limits.seconds * 1000, () => {
      this.#isOld = true
      if (this.#last !== null) this.#sealSoon(this.#last)
    })
  }

  /** Hashes the next step, or the last one when the file is due. */
  #grow(): void {
    const to = this.#target ?? this.#durable
    if (to === null || this.#durable === null || this.#durable.seq < to.seq) return
    if (this.#isGrowing || this.#tree !== null || this.#options.clock.now() < this.#notBefore) return
    this.#isGrowing = true
    this.#stepAfter = to.seq
    const round = this.#round
    this.#growTo(to).then(
      (grown) => {
        if (round !== this.#round) return
        this.#isGrowing = false
        this.#grown = grown
        if (this.#target === null) return
        if (this.#target.seq > to.seq) this.#grow()
        else this.#complete(grown.tree)
      },
      (error: unknown) => {
        if (round === this.#round) this.#retryLater(reasonOf(error))
      },
    )
  }

  async #growTo(to: Head): Promise<GrownTree> {
    const { grow, path } = this.#options
    return to.seq < this.#grown.tree.size ? this.#grown : await grow({ path, from: this.#grown, to })
  }

  /** Called with the tree up to the target. */
  #complete(state: TreeState): void {
    this.#tree = new MerkleTree(state)
    for (const leaf of this.#leaves) this.#tree.add(leaf)
    this.#leaves = []
    if (this.#isDue) this.#options.onReady()
  }

  #retryLater(reason: string): void {
    this.#reset()
    this.#notBefore = this.#options.clock.now() + RETRY_MS
    this.#options.onFault(reason)
  }
}

import { type Clock, reasonOf } from '@plat/core'
import { type FileLedger, lastCheckpoint, signCheckpoint, TreeKeeper } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { Keyring } from './keyring.ts'

export interface CheckpointsOptions {
  readonly ledger: FileLedger
  readonly path: string
  readonly ledgerId: string
  readonly keyring: Keyring
  /** Records after which a checkpoint is made. */
  readonly everyRecords: number
  /** Milliseconds after which one is made as well; null: the records alone say when. */
  readonly everyMs: number | null
  readonly clock: Clock
  readonly log: Log
  /** A checkpoint over all records up to this one is durable. */
  readonly onSigned: (upTo: number) => void
}

/**
 * Signs the ledger now and then: everything up to the last durable record, by its hash and by the root of the tree over all records.
 * The tree grows on a thread of its own, so that whoever writes the ledger meets one comparison a commit.
 */
export class Checkpoints {
  readonly #options: CheckpointsOptions
  readonly #tree: TreeKeeper
  /** The last record that a checkpoint covers, and the checkpoint's own. */
  #covered = -1
  #own = -1
  /** The last record when a checkpoint was last tried: after a failure the next one comes no sooner than after a success. */
  #tried = -1
  #running: Promise<void> | null = null
  #failed = false
  #closed = false
  readonly #stopTimer: () => void

  private constructor(options: CheckpointsOptions) {
    this.#options = options
    this.#tree = new TreeKeeper(options.path)
    this.#stopTimer = options.everyMs === null ? () => {} : options.clock.every(options.everyMs, () => this.#start())
  }

  /** Goes on after the last checkpoint that stands beside the ledger. */
  static async open(options: CheckpointsOptions): Promise<Checkpoints> {
    const last = await lastCheckpoint(options.path)
    const checkpoints = new Checkpoints(options)
    if (last !== null && typeof last.rec.upTo === 'number') {
      checkpoints.#own = last.seq
      checkpoints.#covered = last.rec.upTo
      checkpoints.#tried = last.rec.upTo
      options.onSigned(last.rec.upTo)
    }
    return checkpoints
  }

  /** The last durable record is `seq` now. */
  committed(seq: number): void {
    if (this.#closed) return
    if (seq - this.#tried >= this.#options.everyRecords) this.#start()
  }

  /** Signs what is not covered yet, as far as that can be done. */
  async now(): Promise<void> {
    // One that runs may have begun before the last record.
    await this.#running
    await this.#options.ledger.flush()
    await this.#start()
  }

  /** Signs what is not covered yet, and stops. */
  async close(): Promise<void> {
    this.#stopTimer()
    this.#closed = true
    await this.now()
    await this.#tree.close()
  }

  #start(): Promise<void> {
    this.#running ??= this.#try().finally(() => {
      this.#running = null
      // What was committed meanwhile may be enough for the next one.
      this.committed(this.#options.ledger.head().seq)
    })
    return this.#running
  }

  async #try(): Promise<void> {
    const { log } = this.#options
    try {
      await this.#make()
      if (this.#failed) log.info({ upTo: this.#covered }, 'checkpoints of the audit ledger are made again')
      this.#failed = false
    } catch (error) {
      this.#failed = true
      log.error({ covered: this.#covered, error: reasonOf(error) }, 'no checkpoint of the audit ledger could be made')
    }
  }

  async #make(): Promise<void> {
    const { ledger, ledgerId, keyring, onSigned } = this.#options
    const head = ledger.head()
    this.#tried = head.seq
    // The record of a checkpoint needs no further one.
    if (head.seq === this.#own && this.#own === this.#covered + 1) return
    const keys = await keyring.current()
    if (keys === null) return
    const root = await this.#tree.grow(head)
    const body = { ledgerId, upTo: head.seq, head: head.hash, size: head.seq + 1, root }
    const own = await ledger.append(await signCheckpoint(keys, body))
    this.#own = own.seq
    this.#covered = head.seq
    onSigned(head.seq)
    // Past its own record, so that it stands beside the ledger as well.
    await this.#tree.grow(own)
  }
}

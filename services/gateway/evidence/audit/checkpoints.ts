import { type Clock, reasonOf } from '@plat/core'
import { type FileLedger, lastCheckpoint, signCheckpoint, TreeKeeper } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { Keyring } from './keyring.ts'

export interface CheckpointsOptions {
  readonly ledger: FileLedger
  readonly path: string
  readonly ledgerId: string
  readonly keyring: Keyring
  readonly everyRecords: number
  /** Milliseconds between checkpoints as well; null for records only. */
  readonly everyMs: number | null
  readonly clock: Clock
  readonly log: Log
  /** Called when a checkpoint over all records up to this one is durable. */
  readonly onSigned: (upTo: number) => void
}

/**
 * Signs the ledger periodically: everything up to the last durable record, by its hash and by the root of the tree over all records.
 * The tree grows on a separate thread, so that a commit costs the ledger's writer one comparison.
 */
export class Checkpoints {
  readonly #options: CheckpointsOptions
  readonly #tree: TreeKeeper
  /** The last record that a checkpoint covers, and the record of that checkpoint. */
  #covered = -1
  #own = -1
  /** The last record at the last attempt: a failed attempt counts toward the interval like a successful one. */
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

  /** Continues after the last stored checkpoint. */
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

  /** Called when `seq` is the last durable record. */
  committed(seq: number): void {
    if (this.#closed) return
    if (seq - this.#tried >= this.#options.everyRecords) this.#start()
  }

  /** Signs uncovered records, if possible. */
  async now(): Promise<void> {
    // A running attempt may have begun before the last record.
    await this.#running
    await this.#options.ledger.flush()
    await this.#start()
  }

  /** Signs uncovered records and stops. */
  async close(): Promise<void> {
    this.#stopTimer()
    this.#closed = true
    await this.now()
    await this.#tree.close()
  }

  #start(): Promise<void> {
    this.#running ??= this.#try().finally(() => {
      this.#running = null
      // Records committed meanwhile may be due for the next one.
      this.committed(this.#options.ledger.head().seq)
    })
    return this.#running
  }

  async #try(): Promise<void> {
    const { log } = this.#options
    try {
      await this.#make()
      if (this.#failed) log.info({ upTo: this.#covered }, 'checkpoints of the audit ledger are created again')
      this.#failed = false
    } catch (error) {
      this.#failed = true
      log.error(
        { covered: this.#covered, error: reasonOf(error) },
        'a checkpoint of the audit ledger could not be created',
      )
    }
  }

  async #make(): Promise<void> {
    const { ledger, ledgerId, keyring, onSigned } = this.#options
    const head = ledger.head()
    this.#tried = head.seq
    // The record of a checkpoint itself needs no further checkpoint.
    if (head.seq === this.#own && this.#own === this.#covered + 1) return
    const keys = await keyring.current()
    if (keys === null) return
    const root = await this.#tree.grow(head)
    const body = { ledgerId, upTo: head.seq, head: head.hash, size: head.seq + 1, root }
    const own = await ledger.append(await signCheckpoint(keys, body))
    this.#own = own.seq
    this.#covered = head.seq
    onSigned(head.seq)
    // Covers its own record too, so that the stored checkpoint includes it.
    await this.#tree.grow(own)
  }
}

import type { Clock } from '@plat/core'
import { NO_RECORD, readSegmentReceipt, type StatementKeys } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { Spool } from './spool.ts'

export interface ContactOptions {
  readonly edge: string
  readonly ledgerId: string
  readonly keys: StatementKeys
  readonly spool: Spool
  /** Returns the hash of a ledger record. */
  readonly hashOf: (seq: number) => Promise<string | null>
  readonly clock: Clock
  readonly log: Log
}

/** Time of the last receipt, and its effect on the spool. */
export class CollectorContact {
  readonly #options: ContactOptions
  /** Monotonic milliseconds. */
  #receiptAt: number

  constructor(options: ContactOptions) {
    this.#options = options
    const { spool, clock } = options
    this.#receiptAt = clock.monotonic() - (clock.now() - spool.progress.ackedAt)
  }

  /** Milliseconds since the last valid receipt was issued. */
  get silence(): number {
    return this.#options.clock.monotonic() - this.#receiptAt
  }

  /**
   * Applies a receipt. `sealId` is the seal that it must answer; null for a copied receipt, which may be an old one.
   * Returns null if it is valid, otherwise the reason why not.
   */
  async accept(text: string, sealId: string | null): Promise<string | null> {
    const { edge, ledgerId, keys, spool, hashOf, clock, log } = this.#options
    const statement = readSegmentReceipt(text)
    if (statement === null) return 'not a receipt'
    const { upTo, head, seal, at, ...says } = statement.says
    if (says.edge !== edge || says.ledgerId !== ledgerId) return 'the receipt is for another ledger'
    if (!statement.isSignedBy(keys)) return 'the receipt is not signed by a key of offline.collectorKeyFiles'
    if (sealId !== null && seal !== sealId) return 'the receipt answers another seal'
    if (head !== (upTo === NO_RECORD.seq ? NO_RECORD.hash : await hashOf(upTo))) {
      return `the collector has another record ${upTo} than this ledger`
    }
    const now = clock.now()
    const age = sealId === null ? Math.max(0, now - Date.parse(at)) : 0
    this.#receiptAt = Math.max(this.#receiptAt, clock.monotonic() - age)
    const { acked, base, forwarded } = spool.progress
    if (upTo > acked) {
      await spool.acknowledge(upTo, head, now - age)
    } else if (sealId !== null && upTo < Math.max(base.seq, forwarded)) {
      log.warn({ upTo, before: acked }, 'the collector lost records: the rest is sealed and forwarded again')
      await spool.rewind(upTo, head)
    }
    return null
  }
}

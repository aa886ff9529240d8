import type { Clock } from '@plat/core'
import { NO_RECORD, readSegmentReceipt, type StatementKeys } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { Spool } from './spool.ts'

export interface ContactOptions {
  readonly edge: string
  readonly ledgerId: string
  /** Keys of `offline.collectorKeyFiles`. */
  readonly keys: StatementKeys
  readonly spool: Spool
  /** The hash of a record of the ledger. */
  readonly hashOf: (seq: number) => Promise<string | null>
  readonly clock: Clock
  readonly log: Log
}

/** When the collector was last heard, and what its receipts do to the spool. */
export class CollectorContact {
  readonly #options: ContactOptions
  /** Monotonic milliseconds. */
  #heardAt: number

  constructor(options: ContactOptions) {
    this.#options = options
    const { spool, clock } = options
    this.#heardAt = clock.monotonic() - (clock.now() - spool.progress.ackedAt)
  }

  /** Milliseconds since a receipt that counts was made. */
  get silence(): number {
    return this.#options.clock.monotonic() - this.#heardAt
  }

  /**
   * Takes a receipt. `sealId` names the seal that it must answer; null: it was carried here, and may be an old one. Null: it counts.
   * A text says why it does not.
   */
  async hear(text: string, sealId: string | null): Promise<string | null> {
    const { edge, ledgerId, keys, spool, hashOf, clock, log } = this.#options
    const statement = readSegmentReceipt(text)
    if (statement === null) return 'it is no receipt'
    const { upTo, head, seal, at, ...says } = statement.says
    if (says.edge !== edge || says.ledgerId !== ledgerId) return 'the receipt is for another ledger'
    if (!statement.isSignedBy(keys)) return 'the receipt is not signed by a key of offline.collectorKeyFiles'
    if (sealId !== null && seal !== sealId) return 'the receipt answers another seal'
    if (head !== (upTo === NO_RECORD.seq ? NO_RECORD.hash : await hashOf(upTo))) {
      return `the collector has another record ${upTo} than this ledger`
    }
    const now = clock.now()
    const age = sealId === null ? Math.max(0, now - Date.parse(at)) : 0
    this.#heardAt = Math.max(this.#heardAt, clock.monotonic() - age)
    const { acked, base, forwarded } = spool.progress
    if (upTo > acked) {
      await spool.acknowledge(upTo, head, now - age)
    } else if (sealId !== null && upTo < Math.max(base.seq, forwarded)) {
      log.warn(
        { upTo, before: acked },
        'the collector has less than it was given: the rest is sealed and forwarded anew',
      )
      await spool.rewind(upTo, head)
    }
    return null
  }
}

import type { AuditRecord } from '../formats/words.ts'

export interface Item {
  readonly record: AuditRecord
  readonly text: string
}

/** Result of a batch. */
export type Delivery =
  | {
      readonly kind: 'accepted'
      /** Length of the accepted prefix; default: all. */
      readonly count?: number
      /** Those among them that the receiver permanently refuses. */
      readonly refused?: readonly { readonly item: Item; readonly reason: string }[]
    }
  /** The receiver rejects a record of the batch, or its size. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** A failure unrelated to the records: they are sent again. */
  | { readonly kind: 'failed'; readonly reason: string; readonly retryAfterMs?: number }

/** Destination of records. */
export interface Receiver {
  /** Formats a record; its size counts toward `maxBatchBytes`. */
  write(record: AuditRecord): string
  /** Delivers the records in order; resolves when the receiver has them. Exceptions count as failures. */
  deliver(batch: readonly Item[]): Promise<Delivery>
}

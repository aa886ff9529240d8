import type { AuditRecord } from '../formats/words.ts'

/** A record and the text that is sent for it. */
export interface Item {
  readonly record: AuditRecord
  readonly text: string
}

/** What became of a batch. */
export type Delivery =
  | {
      readonly kind: 'accepted'
      /** So many of them, the first ones; absent: all. */
      readonly count?: number
      /** Those among them that the receiver will never take. */
      readonly refused?: readonly { readonly item: Item; readonly reason: string }[]
    }
  /** Something in the batch is not to the receiver's liking, or it is too large. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** Nothing is said of the records: they are sent again. */
  | { readonly kind: 'failed'; readonly reason: string; readonly retryAfterMs?: number }

/** Where records go. */
export interface Receiver {
  /** The text for a record; its bytes are held against `maxBatchBytes`. */
  write(record: AuditRecord): string
  /** Delivers the records in their order, and answers when the receiver has them. What it throws is a failure. */
  deliver(batch: readonly Item[]): Promise<Delivery>
}

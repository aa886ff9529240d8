import type { Bagged } from '@plat/core'

/** Members of a ledger record. Absent is preferred to null; strings have at most 1,024 bytes; amounts are integers. */
export interface Rec {
  readonly kind: RecKind
  readonly [member: string]: RecValue | undefined
}

export type RecKind =
  | 'intent'
  | 'outcome'
  | 'decision'
  | 'approval'
  | 'revocation'
  | 'message'
  | 'admin'
  | 'checkpoint'
  | 'gap'
  | 'recovered'
  | 'config'
  | 'anchor'
  | 'alert'
  | 'segment'
  | 'open'

export type RecValue =
  | string
  | number
  | boolean
  | readonly (RecValue | undefined)[]
  | { readonly [member: string]: RecValue | undefined }

/** Position of a record in its chain. */
export interface RecordPlace {
  readonly seq: number
  readonly hash: string
}

/** An intent without an outcome. Its call passes the same object with both records; only the ledger changes it. */
export interface OpenIntent extends Bagged {
  /** Number of its record; -1 before it has one. */
  seq: number
}

/** Callbacks for one record: exactly one is called, once, possibly synchronously. Neither may throw. */
export interface RecordWaiter {
  durable(place: RecordPlace): void
  failed(error: unknown): void
  /** Passed with an intent and with its outcome, which closes it. Absent: the intent of an outcome is found by `call`. */
  readonly intent?: OpenIntent | undefined
}

/** One chain of records with one writer. */
export interface Ledger {
  /** Resolves when the record is on disk. Adds `at`, `tenant` and `replica`. Rejects when it cannot be made durable. */
  append(rec: Rec): Promise<RecordPlace>
  /** Like `append` with callbacks: calls wait for their intents, but not for their outcomes. */
  enter(rec: Rec, waiter: RecordWaiter): void
  head(): RecordPlace
  readonly health: 'ok' | 'poisoned' | 'recovering'
  close(): Promise<void>
}

/** Returns the ledger of a tenant; `''` is the broker itself. */
export interface Ledgers {
  of(tenant: string): Ledger
}

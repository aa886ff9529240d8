/** What a ledger line says. Absent beats null; strings hold at most 1,024 bytes; amounts are integers. */
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

export type RecValue =
  | string
  | number
  | boolean
  | readonly (RecValue | undefined)[]
  | { readonly [member: string]: RecValue | undefined }

/** The place of a record in its chain. */
export interface RecordPlace {
  readonly seq: number
  readonly hash: string
}

/** Is told what came of one record: exactly one of the two is called, once, perhaps at once. Neither may throw. */
export interface RecordWaiter {
  durable(place: RecordPlace): void
  failed(error: unknown): void
}

/** One chain of records with one writer. */
export interface Ledger {
  /** Resolves after the record is on disk. Adds `at`, `tenant` and `replica`. Rejects when it could not be made durable. */
  append(rec: Rec): Promise<RecordPlace>
  /** `append` without the promise: calls wait in their own way for their intents, and for their outcomes not at all. */
  enter(rec: Rec, waiter: RecordWaiter): void
  head(): RecordPlace
  readonly health: 'ok' | 'poisoned' | 'recovering'
  close(): Promise<void>
}

/** The ledger that a tenant's records go to; `''` is the broker itself. */
export interface Ledgers {
  of(tenant: string): Ledger
}

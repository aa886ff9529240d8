export type { Ledger, Ledgers, Rec, RecKind, RecValue } from './types.ts'

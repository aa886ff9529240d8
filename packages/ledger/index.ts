export type { Damage } from './chain.ts'
export { FileLedger, type LedgerMeter, LedgerUnavailable } from './ledger.ts'
export { LedgerDamaged, type OpenLedgerOptions, openLedger } from './open.ts'
export type { Ledger, Ledgers, Rec, RecKind, RecValue } from './types.ts'

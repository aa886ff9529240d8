export type { Damage } from './chain.ts'
export { holdsOf, settledOf } from './holds.ts'
export { type LedgerPage, type LedgerQuery, ledgerPage, newestFirst } from './page.ts'
export { type CheckpointBody, type CheckpointKeys, signCheckpoint } from './proof/checkpoint.ts'
export { TreeKeeper } from './proof/keeper.ts'
export {
  checkpointsPath,
  type KeptCheckpoint,
  LedgerRolledBack,
  lastCheckpoint,
  refuseRolledBack,
} from './proof/kept.ts'
export { type NoReceipt, type Receipt, receiptBeside, receiptFromLedger, verifyReceipt } from './proof/receipt.ts'
export { leafHash, MerkleTree } from './proof/tree.ts'
export { type TailLine, type TailOptions, tailLedger } from './tail.ts'
export type { Ledger, Ledgers, Rec, RecKind, RecordWaiter, RecValue } from './types.ts'
export { readTrust, type VerifyOptions, verifyLedger } from './verify.ts'
export { EXIT_CODES, type Finding, VerifyUsage } from './verify-pass.ts'
export { FileLedger, type LedgerMeter, LedgerUnavailable } from './writer/ledger.ts'
export { LedgerDamaged, type OpenLedgerOptions, openLedger } from './writer/open.ts'
export { type Repaired, repairLedger } from './writer/repair.ts'

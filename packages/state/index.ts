export {
  type AppendHandle,
  type Files,
  filesOver,
  isMissing,
  type ReadHandle,
  readAll,
  systemFiles,
} from './file/files.ts'
export { OwnedFile, type SystemCalls } from './file/owned-file.ts'
export { type FileJournalOptions, JournalError, openFileJournal } from './file-journal.ts'
export {
  type AppendTarget,
  type Committed,
  FIRST_RECOVERY_MS,
  GroupCommit,
  LINGER_MS,
  LONGEST_RECOVERY_MS,
  type Waiter,
} from './group-commit.ts'
export { type Journal, type JournalEntry, type OpenJournal, unknownEvent } from './journal.ts'
export { readJournalFile, type StoredJournal } from './journal-file.ts'
export { JournalFollower, type JournalSnapshot } from './journal-follower.ts'
export { readJournalLine, writeJournalLine } from './journal-line.ts'
export { fileJournals, type JournalSpec, type Journals } from './journals.ts'
export { type Leadership, soleLeadership } from './leadership.ts'
export { type Lease, type Leases, memoryLeases } from './lease/lease.ts'
export {
  type Hold,
  type HoldItem,
  isShort,
  type Limits,
  type Overrun,
  PoolFullError,
  type Short,
} from './limits/limits.ts'
export { type Counted, LocalLimits, type LocalLimitsOptions } from './limits/local-limits.ts'
export { SplitLimits } from './limits/split-limits.ts'
export { WindowCalendar, windowEnd, windowOf } from './limits/window.ts'
export { LockedError, lockFile, lockPath } from './lock.ts'
export { createMemoryJournal } from './memory-journal.ts'
export { memoryOnceSets, type OnceSet, type OnceSets, type OnceVerdict } from './once/once.ts'
export type { SharedLimits, SharedLimitsOptions } from './postgres/counting/limits.ts'
export type { MovableState, MovedKind, MoveOptions } from './postgres/move/move.ts'
export { openPostgresOnceSets, type PostgresOptions } from './postgres/once-sets.ts'
export { readDsn, StateUnreachableError } from './postgres/pool.ts'
export type { PostgresState } from './postgres/state.ts'
export type {
  CopyOwner,
  LedgerCopies,
  LedgerCopy,
  Shipped,
  ShippedChunk,
  StoredChunk,
} from './postgres/tables/ledger-copies.ts'
export { moveStateToPostgres, openPostgresState } from './postgres-state.ts'
export { countedJournal, withShares } from './shared-appends.ts'

export { type Capture, capturePath, openCapture, sealCapture } from './capture/capture.ts'
export type { Damage } from './chain.ts'
export { CopyDamagedError, compressChunk, openChunk } from './copy/chunk.ts'
export { type LocalLedger, localLedger, whyDiverged } from './copy/compare.ts'
export { type CopySource, copyFiles, copyPath } from './copy/copy-files.ts'
export { ChunkCutter, type CopyEnd, type CutChunk, listed, NotContinuedError } from './copy/cutter.ts'
export { type Rebuilt, rebuildLedger, rebuildRecorded, unfinishedRebuild } from './copy/rebuild.ts'
export { type EvidenceQuery, type Gathered, gatherEvidence, type NotGathered } from './evidence/gather.ts'
export { type EvidenceHead, readEvidenceHead, sealEvidence } from './evidence/object.ts'
export {
  type EvidenceFinding,
  type EvidenceTrust,
  recordsOfEvidence,
  UNSIGNED_CHECKPOINT,
  verifyEvidence,
} from './evidence/verify.ts'
export { AnchoredLedger, type AnchorMeter } from './followed/anchored-ledger.ts'
export { type EntryLine, writeEntry } from './followed/entry-line.ts'
export { FollowedChain, type FollowFault } from './followed/followed-chain.ts'
export { FollowedFile, type FollowedPosition, type Look } from './followed/followed-file.ts'
export { PositionFile } from './followed/position-file.ts'
export { holdsOf, settledOf } from './holds.ts'
export type { LedgerLine, LedgerMoment } from './moment.ts'
export {
  anchorRecord,
  isLogAnchor,
  isLogProof,
  type LogPromise,
  type LogProof,
  logFault,
  readAnchor,
} from './proof/anchor.ts'
export { type CheckpointBody, type CheckpointKeys, signCheckpoint } from './proof/checkpoint.ts'
export { TreeKeeper } from './proof/keeper.ts'
export { isSignedBy, readNote, type SignedNote, signNote } from './proof/note.ts'
export { type NoReceipt, type Receipt, receiptBeside, receiptFromLedger, verifyReceipt } from './proof/receipt.ts'
export { receiptOfCopy } from './proof/receipt-of-copy.ts'
export {
  checkpointsPath,
  keysPath,
  lastCheckpoint,
  refuseRolledBack,
  type StoredCheckpoint,
} from './proof/stored-checkpoint.ts'
export { leafHash, MerkleTree } from './proof/tree.ts'
export { LedgerReader, type ReadLine } from './reader.ts'

export { compressInThread } from './retention/compress-in-thread.ts'
export { coveredBy } from './retention/covered.ts'
export { HoldKeeper, TooManyHoldsError } from './retention/hold-keeper.ts'
export { type Inspection, inspectSegment } from './retention/inspect.ts'
export { leave, removeLeftovers } from './retention/leave.ts'
export {
  coversSegment,
  type HoldTarget,
  type LegalHold,
  readHoldTarget,
  readLegalHolds,
  textOfTarget,
  writeLegalHolds,
} from './retention/legal-holds.ts'
export { earliestOf, FILTER_MEMBERS, type RecordFilter, type Selector, selectorOf } from './search/filter.ts'
export {
  type FleetCursor,
  type FleetPage,
  fleetPage,
  type PagedLedger,
  readFleetCursor,
  writeFleetCursor,
} from './search/fleet-page.ts'
export { leftRecords } from './search/left-records.ts'
export { type LedgerQuery, ledgerPage, newestFirst, searchLedger } from './search/page.ts'

export { LineReader, type LinesWanted, type RawLines } from './segment/read.ts'
export {
  type Followed as FollowedSegment,
  followSegment,
  MAX_SEAL_BYTES,
  NO_RECORD,
  readSegment,
  type Segment,
  sealIdOf,
  segmentBytes,
} from './segment/segment.ts'
export {
  readSeal,
  readSegmentReceipt,
  type SegmentReceipt,
  type SegmentSeal,
  type Statement,
  type StatementKeys,
  signSeal,
  signSegmentReceipt,
} from './segment/statement.ts'
export { replaceText, type SourceFiles } from './sequence/files.ts'
export { openCallsOf } from './sequence/open-call-records.ts'
export { scanPresent } from './sequence/scan.ts'
export { type LedgerSegment, segmentPath, segmentsPath } from './sequence/segment-entry.ts'
export { SegmentListError } from './sequence/segment-list-error.ts'
export { readSegmentLine, type SegmentLine, type SegmentRecord } from './sequence/segment-record.ts'
export { ArchivedError, LedgerSequence } from './sequence/sequence.ts'
export { type SegmentResult, verifySegments } from './sequence/verify-segments.ts'
export { type TailLine, type TailOptions, tailLedger } from './tail.ts'
export type { Ledger, Ledgers, OpenIntent, Rec, RecKind, RecordPlace, RecordWaiter, RecValue } from './types.ts'
export { type ArchivedRecords, EXIT_CODES, type Finding, VerifyUsageError } from './verify/finding.ts'
export { hmacKeyOf, readKeys, readTrust, type VerifyOptions, verifyLedger } from './verify.ts'
export { type HeadStore, headFile, headPath } from './writer/head-file.ts'
export { FileLedger, type LedgerMeter, LedgerUnavailableError, type UnreadBeginning } from './writer/ledger.ts'
export { type OpenLedgerOptions, openLedger, type SealingOptions } from './writer/open.ts'
export { LedgerDamagedError } from './writer/reading.ts'
export { type Repaired, repairLedger } from './writer/repair.ts'
export { type RestoredSegment, RestoreError, restoreSegment } from './writer/restore-segment.ts'
export { ListKeeper } from './writer/sealing/list-keeper.ts'
export { openServiceLedger } from './writer/service.ts'

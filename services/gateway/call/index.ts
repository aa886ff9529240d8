export type { Body } from './body.ts'
export type { Arrival, Call, Parsed, StopListener, StopReason, StopSignal, WireRequest } from './call.ts'
export { type Credential, NO_CREDENTIAL, type OAuthGrant, type UpstreamAuth } from './credential.ts'
export { type Denial, deny, isDenial, statusOf } from './denial.ts'
export { type ErrorCode, type ErrorRow, errorTable } from './errors.ts'
export type {
  ApprovalUse,
  Decision,
  Fact,
  Facts,
  Identity,
  RedactedView,
  TaintView,
  Target,
  ToolLabels,
  ToolPin,
} from './facts.ts'
export type { Operation } from './operation.ts'
export type { Outcome, Usage } from './outcome.ts'
export type { Ending, Frame, Head, Message, Passed, Reply } from './reply.ts'
export { FrameRun } from './run.ts'
export { type Slot, type Snapshot, Snapshots } from './snapshot.ts'
export { unresolved } from './unresolved.ts'

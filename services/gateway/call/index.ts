export {
  type BuiltinServer,
  type BuiltinTool,
  builtinTool,
  type Caller,
  type ToolCall,
  type ToolResult,
  toolFailure,
  toolText,
} from './builtin/server.ts'
export type {
  Arrival,
  Body,
  Call,
  Parsed,
  StopListener,
  StopReason,
  StopSignal,
  TraceContext,
  WireRequest,
} from './call.ts'
export { type Credential, type MtlsAuth, NO_CREDENTIAL, type OAuthGrant, type UpstreamAuth } from './credential.ts'
export { type Denial, deny, isDenial, kindOf, statusOf } from './denial.ts'
export { type ErrorCode, type ErrorRow, errorTable } from './errors.ts'
export {
  type ApprovalUse,
  type Asks,
  agentOf,
  callerOf,
  callingAgentOf,
  classOfSession,
  type Decision,
  type Fact,
  type Facts,
  type Identity,
  labelsByTrust,
  labelsOfClass,
  type RedactedView,
  type SessionRef,
  type TaintView,
  type Target,
  type ToolLabels,
  type ToolPin,
  unresolved,
} from './facts.ts'
export { searchesByItself, switchedOnTools } from './hosted.ts'
export { type Operation, SANDBOX_USAGE } from './operation.ts'
export type { Outcome, Usage } from './outcome.ts'
export type { Pieces, Redactor, Where } from './redactor.ts'
export {
  type Ending,
  type Frame,
  type Head,
  type Message,
  type Passed,
  type Reply,
  type StreamEnd,
  UpstreamError,
} from './reply.ts'
export { FrameRun } from './run.ts'
export { type Slot, type Snapshot, Snapshots } from './snapshot.ts'

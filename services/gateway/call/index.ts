export { BATCH_PRICE, type BatchRequests, type BatchUse, holdOfBatch, isHoldOfBatch } from './batch.ts'
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
  AbortListener,
  AbortReason,
  Body,
  Call,
  CallSignal,
  Parsed,
  RequestContext,
  TraceContext,
  WireRequest,
} from './call.ts'
export { type Credential, type MtlsAuth, NO_CREDENTIAL, type OAuthGrant, type UpstreamAuth } from './credential.ts'
export type { DemandOf, ModelDemand, PricedModel } from './demand.ts'
export { type Denial, deny, isDenial, kindOf, statusOf } from './denial.ts'
export { earlierContent, idsOfResponse } from './earlier-content.ts'
export { type ErrorCode, type ErrorRow, errorTable } from './errors.ts'
export {
  type ApprovalUse,
  agentOf,
  type CallRequirements,
  callerOf,
  callingAgentOf,
  classOfSession,
  type Decision,
  type Fact,
  type Facts,
  type Identity,
  isNamed,
  labelsByTrust,
  labelsOfClass,
  type RedactedView,
  type SessionRef,
  scopeDecision,
  type TaintView,
  type Target,
  type ToolLabels,
  type ToolPin,
  unresolved,
} from './facts.ts'
export { definedTools, searchesByItself, switchedOnTools } from './hosted.ts'
export { MEDIA_UNITS, type MediaDemand, type MediaUse, MODEL_SCOPES, modelScopeOf } from './media.ts'
export {
  ALL_ROUTES,
  ALL_SERVERS,
  BATCH_USAGE,
  isBesideModels,
  isUsageBesideCalls,
  type Operation,
  SANDBOX_USAGE,
} from './operation.ts'
export type { Outcome, Usage } from './outcome.ts'
export type {
  CountHit,
  DlpAction,
  DlpDirection,
  RedactionScope,
  Redactor,
  TextRedactor,
} from './redactor.ts'
export {
  type Ending,
  type Frame,
  type FrameVerdict,
  type Head,
  type Message,
  type Reply,
  type StreamEnd,
  UpstreamError,
} from './reply.ts'
export { FrameRun } from './run.ts'
export { type SandboxName, sandboxTemplateProblems, sandboxUrl } from './sandbox.ts'
export { type Slot, type Snapshot, Snapshots } from './snapshot.ts'
export { type StoredContent, storedContent } from './stored-content.ts'
export { type CountedBy, inTenant, namesOfKey, type Subject, subjectsOf, tenantInKey } from './subjects.ts'
export { noTenancy, type Tenancy } from './tenancy.ts'
export { toolsScopeOf } from './tools-scope.ts'
export { unstored } from './unstored.ts'

export { type CelRule, type CelVariables, compileExpression, EXPRESSION_MAX_CHARS, type Expression } from './cel.ts'
export { checkStructure, type FieldProblem, type Node } from './check.ts'
export { problemLine } from './decode.ts'
export { AGENT_REQUIRED_ON_CLUSTER, tierOfAgent } from './kinds/agent.ts'
export { MODEL_ADAPTERS } from './kinds/agent-model.ts'
export {
  type AgentSpec,
  API_VERSION,
  editorSchemaFile,
  isClusterKind,
  isKind,
  type Kind,
  kinds,
  type Manifest,
  type MCPServerSpec,
  type Resource,
  type SpecOf,
  type StatusOf,
} from './kinds/kinds.ts'
export { isTerminal, SESSION_PHASES } from './kinds/sandbox/agentsession.ts'
export { grantsOf, modelPathOf } from './kinds/sandbox/scopes.ts'
export type { TrustTierSpec } from './kinds/sandbox/trusttier.ts'
export { linesOf, type ParsedManifest, parseResource } from './manifest.ts'
export { readManifestAside } from './manifest-aside.ts'
export { createFileStore, type FileStore, type FileStoreOptions } from './store/file.ts'
export { writeWhole } from './store/sidecar.ts'
export type {
  Applied,
  ApplyOptions,
  Conflict,
  Invalid,
  Key,
  ListOptions,
  Page,
  RemoveOptions,
  ResourceStore,
  WatchEvent,
} from './store/store.ts'
export { readTree } from './store/tree.ts'
export { validate } from './validate.ts'
export { THREAD_OPTIONS, THREAD_READ_MS, WorkerThread } from './worker-thread.ts'

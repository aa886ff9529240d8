/** Kinds of calls. Each has a row in the stage matrix; an operation without a row is refused. */
export type Operation =
  | 'mcp.call'
  | 'mcp.list'
  | 'mcp.get'
  | 'mcp.control'
  | 'mcp.answer'
  | 'mcp.task'
  | 'mcp.listen'
  | 'mcp.all'
  | 'mcp.streams'
  | 'model.generate'
  | 'model.embed'
  | 'model.image'
  | 'model.audio'
  | 'model.file'
  | 'model.batch'
  | 'model.line'
  | 'model.info'
  | 'a2a.send'
  | 'a2a.follow'
  | 'a2a.task'
  | 'a2a.card'
  | 'exec'
  | 'tunnel'
  | 'infra'

/** Returns whether calls of this operation name no model: their targets name an endpoint of the provider instead. */
export function isBesideModels(operation: Operation): boolean {
  return operation === 'model.file' || operation === 'model.batch'
}

/** `op` of records of a sandbox's usage. It is not a call, so it has no row in the matrix, but its cost counts like that of a call. */
export const SANDBOX_USAGE = 'usage.sandbox'

/** `op` of the records of what a batch has used, written when its results are known. */
export const BATCH_USAGE = 'usage.batch'

/** Returns whether records with this `op` are about usage beside calls. */
export function isUsageBesideCalls(op: unknown): boolean {
  return op === SANDBOX_USAGE || op === BATCH_USAGE
}

/** Server of requests to the address of all MCP servers that none of them receives as it is; no server has this name. */
export const ALL_SERVERS = '*'

/** Server of requests for the models of all routes; no route has this name. */
export const ALL_ROUTES = '*'

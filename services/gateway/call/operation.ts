/** What a call can be. A closed set: each has one row in the stage matrix, and an operation without a row is refused. */
export type Operation =
  | 'mcp.call'
  | 'mcp.list'
  | 'mcp.get'
  | 'mcp.control'
  | 'mcp.answer'
  | 'mcp.listen'
  | 'model.generate'
  | 'model.embed'
  | 'model.info'
  | 'a2a.send'
  | 'a2a.follow'
  | 'a2a.task'
  | 'a2a.card'
  | 'exec'
  | 'tunnel'
  | 'liveview'
  | 'infra'

/** `op` of records of what a sandbox used: no call, so no row of the matrix, but its money counts like that of one. */
export const SANDBOX_USAGE = 'usage.sandbox'

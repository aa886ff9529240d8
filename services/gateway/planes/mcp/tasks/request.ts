import type { OwnedTask } from '../../../call/bindings/bindings.ts'
import { type Denial, deny, type Parsed } from '../../../call/index.ts'
import type { McpBody, McpRequest, SharedRequest } from '../message.ts'
import { withoutServer } from '../shared/naming.ts'
import { followedTasks, relatedTasks, type TaskIdChanges } from './ids.ts'
import { declaresTasks, TASKS_EXTENSION } from './status.ts'

/** JSON-RPC "invalid params", and the error of revision 2026-07-28 for a missing capability of the client. */
const INVALID_PARAMS = -32602
const MISSING_CAPABILITY = -32021

/** A message that may name tasks. */
interface TaskMessage {
  readonly message: object
  /** Null: the address of one server. */
  readonly shared: SharedRequest | null
  /** Returns the caller's task with this id of the server; null: it has none. */
  task(id: string): OwnedTask | null
}

/** Returns the changes to ids of tasks that a message names beside its parameters. */
export function taskChanges(posted: TaskMessage, method: string): TaskIdChanges {
  const { shared, message } = posted
  const own = (id: string) => {
    const text = shared === null ? id : withoutServer(id, shared.prefix)
    return text === null || posted.task(text) === null ? null : text
  }
  return method === 'subscriptions/listen' ? followedTasks(message, own) : relatedTasks(message, own)
}

/** A request for a task is judged like the call that created it. */
export function aboutTask(body: McpBody, { era, method, task }: McpRequest, server: string): Parsed | Denial {
  if (era === 'modern' && !declaresTasks(body.value)) {
    const requiredCapabilities = { extensions: { [TASKS_EXTENSION]: {} } }
    const data = { rpc: MISSING_CAPABILITY, requiredCapabilities }
    return deny('invalid_request', `${method} needs the client capability ${TASKS_EXTENSION}`, { data })
  }
  // Also for a task of another session, which must look like one that does not exist.
  if (task === undefined) return deny('not_found', 'no such task', { data: { rpc: INVALID_PARAMS } })
  const { call: parent } = task
  return { operation: 'mcp.task', method, server, name: task.task.tool, body, parent, parentOperation: 'mcp.call' }
}

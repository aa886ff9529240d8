import { findSpan, member } from '@plat/core'
import type { OwnedTask } from '../../../call/bindings/bindings.ts'
import { type Denial, deny, type Parsed } from '../../../call/index.ts'
import { type McpBody, type McpRequest, type Replacement, type SharedRequest, spliced, withValue } from '../message.ts'
import { withoutServer, withServer } from '../shared/naming.ts'
import { declaresTasks, RELATED_TASK, TASKS_EXTENSION } from './status.ts'

type Path = readonly string[]

/** JSON-RPC "invalid params", and the error of revision 2026-07-28 for a missing capability of the client. */
const INVALID_PARAMS = -32602
const MISSING_CAPABILITY = -32021

/** Where a message of a server states the id of a task. */
const STATED: readonly Path[] = [
  ['result', 'taskId'],
  ['result', 'task', 'taskId'],
  ['result', '_meta', RELATED_TASK, 'taskId'],
  ['params', 'taskId'],
  ['params', '_meta', RELATED_TASK, 'taskId'],
]

/** Where a message of a client names the task to which it belongs. */
const RELATED: readonly Path[] = [
  ['params', '_meta', RELATED_TASK],
  ['result', '_meta', RELATED_TASK],
]

/** Paths of ids of tasks that redaction must not change, in messages that state a task. */
export const TASK_IDS: readonly Path[] = STATED

/** Returns a message of a server with the ids of tasks as the client must write them at the address of all servers. */
export function withSharedTaskIds(json: Uint8Array, value: unknown, prefix: string): Uint8Array {
  let bytes = json
  for (const path of STATED) {
    const id = at(value, path)
    if (typeof id === 'string') bytes = withValue(bytes, path, jsonText(withServer(id, prefix)))
  }
  return bytes
}

/** Changes to the ids of tasks in a message of a client. */
export interface TaskIdChanges {
  readonly replaced: readonly Replacement[]
  readonly withheld: readonly Path[]
}

const NO_CHANGES: TaskIdChanges = { replaced: [], withheld: [] }

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

/**
 * Returns the changes to a message that names tasks beside its parameters: ids are those of the server, and tasks of other sessions are
 * removed. `own` returns the server's id of a task of the caller; null: the caller has none.
 */
function relatedTasks(message: unknown, own: (id: string) => string | null): TaskIdChanges {
  const replaced: Replacement[] = []
  const withheld: Path[] = []
  for (const path of RELATED) {
    const related = at(message, path)
    if (related === undefined) continue
    const id = member(related, 'taskId')
    const known = typeof id === 'string' ? own(id) : null
    if (known === null) withheld.push(path)
    else if (known !== id) replaced.push({ path: [...path, 'taskId'], with: jsonText(known) })
  }
  return replaced.length + withheld.length === 0 ? NO_CHANGES : { replaced, withheld }
}

/** The same for `subscriptions/listen`, which names the tasks whose status the client follows. */
function followedTasks(message: unknown, own: (id: string) => string | null): TaskIdChanges {
  const path = ['params', 'notifications', 'taskIds']
  const ids = at(message, path)
  if (ids === undefined) return NO_CHANGES
  if (!Array.isArray(ids)) return { replaced: [], withheld: [path] }
  const known = ids.map((id) => (typeof id === 'string' ? own(id) : null)).filter((id) => id !== null)
  return { replaced: [{ path, with: jsonText(known) }], withheld: [] }
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

/** Returns the acknowledgement of `subscriptions/listen` with ids as the client wrote them. */
export function withSharedFollowedIds(json: Uint8Array, value: unknown, prefix: string): Uint8Array {
  const path = ['params', 'notifications', 'taskIds']
  const ids = at(value, path)
  const span = Array.isArray(ids) ? findSpan(json, path) : null
  if (span === null || !Array.isArray(ids)) return json
  return spliced(json, span, jsonText(ids.map((id) => withServer(String(id), prefix))))
}

function at(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((found, name) => member(found, name), value)
}

function jsonText(value: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(value))
}

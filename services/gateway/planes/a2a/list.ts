import { findSpan, isObject, skipSpace, withoutElements, withoutMembers } from '@plat/core'

/** The tasks of a list that its caller may see. */
export interface ListView {
  owns(task: string): boolean
  /** Returns the sealed page token of the agent, since the token itself may reveal tasks of other callers; empty if the list has no next page. */
  sealPage(token: string): string
}

/** A JSON-RPC response: its bytes, which passed `checkJson`, and their value. */
export interface ListResponse {
  readonly json: Uint8Array
  readonly value: unknown
}

const CLOSE_OBJECT = 0x7d

/** Members of the result that plat writes itself. */
const OWN_MEMBERS = [
  ['result', 'totalSize'],
  ['result', 'nextPageToken'],
]

/**
 * Returns the response of `ListTasks` with only the caller's tasks, or null if it is not a list. `totalSize` is the number of visible tasks,
 * since the agent's number would reveal how many tasks others have. All other bytes stay as they are: the list is not parsed a second time.
 */
export function ownTasks({ json, value }: ListResponse, view: ListView): Uint8Array | null {
  if (!isObject(value) || !isObject(value.result)) return null
  const { tasks = [], nextPageToken } = value.result
  if (!Array.isArray(tasks)) return null
  const isKept = tasks.map((task: unknown) => isOwn(task, view))
  const members = {
    ...(Object.hasOwn(value.result, 'tasks') ? {} : { tasks }),
    totalSize: isKept.filter(Boolean).length,
    nextPageToken: typeof nextPageToken === 'string' && nextPageToken !== '' ? view.sealPage(nextPageToken) : '',
  }
  const rest = withoutMembers(json, OWN_MEMBERS)
  const list = findSpan(rest, ['result', 'tasks'])
  return withMembers(list === null ? rest : withoutElements(rest, list[0], (at) => isKept[at] === true), members)
}

/** Adds members to the begin of the result. */
function withMembers(json: Uint8Array, members: Readonly<Record<string, unknown>>): Uint8Array | null {
  const result = findSpan(json, ['result'])
  if (result === null) return null
  const inside = result[0] + 1
  const added = JSON.stringify(members).slice(1, -1)
  const comma = json[skipSpace(json, inside)] === CLOSE_OBJECT ? '' : ','
  return Buffer.concat([json.subarray(0, inside), Buffer.from(added + comma), json.subarray(inside)])
}

function isOwn(task: unknown, view: ListView): boolean {
  return isObject(task) && typeof task.id === 'string' && view.owns(task.id)
}

import { isObject, type JsonObject, parseLossless } from '@plat/core'

/** The tasks of a list that its caller may see. */
export interface ListView {
  owns(task: string): boolean
  /** Returns the sealed page token of the agent, since the token itself may reveal tasks of other callers; empty if the list has no next page. */
  sealPage(token: string): string
}

/**
 * Returns the response of `ListTasks` with only the caller's tasks, or null if it is not a list. `totalSize` is the number of visible tasks,
 * since the agent's number would reveal how many tasks others have. Numbers keep their source text.
 */
export function ownTasks(json: Uint8Array, view: ListView): Uint8Array | null {
  const response = parseLossless(json)
  if (!isObject(response) || !isObject(response.result)) return null
  const { tasks = [], nextPageToken } = response.result
  if (!Array.isArray(tasks)) return null
  const own = tasks.filter((task: unknown) => isOwn(task, view))
  const result: JsonObject = {
    ...response.result,
    tasks: own,
    totalSize: own.length,
    nextPageToken: typeof nextPageToken === 'string' && nextPageToken !== '' ? view.sealPage(nextPageToken) : '',
  }
  return Buffer.from(JSON.stringify({ ...response, result }))
}

function isOwn(task: unknown, view: ListView): boolean {
  return isObject(task) && typeof task.id === 'string' && view.owns(task.id)
}

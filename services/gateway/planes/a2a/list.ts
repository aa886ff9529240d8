import { parseLossless } from '@plat/core'
import { isObject, type JsonObject } from '../wire/json.ts'

/** What of a list of tasks its caller may see. */
export interface ListView {
  owns(task: string): boolean
  /** The agent's page token under seal: as it is, it may tell of the tasks of others. */
  sealPage(token: string): string
}

/**
 * The answer of `ListTasks` with the caller's own tasks alone; null: it is no list. `totalSize` then counts what is shown, since the
 * agent's own number tells how many tasks others have. Numbers keep their source text.
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

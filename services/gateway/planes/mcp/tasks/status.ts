import { createHash } from 'node:crypto'
import { isObject, type JsonObject, member } from '@plat/core'
import type { Era } from '../classify.ts'
import { META_CAPABILITIES } from '../message.ts'

/** The tasks extension of revision 2026-07-28; revision 2025-11-25 has tasks as a capability. */
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks'

/** Member of `_meta` that names the task to which a message of revision 2025-11-25 belongs. */
export const RELATED_TASK = 'io.modelcontextprotocol/related-task'

/** Statuses after which a task does not change. */
const ENDED: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled'])
const STATUSES: ReadonlySet<string> = new Set([...ENDED, 'working', 'input_required'])
/** Digits of the digest of the names of open requests. */
const REQUESTS_DIGITS = 8

/** Milliseconds after its last use for which the owner of a task is stored: a day, or an hour when the task has ended. */
export function keptMsOf(status: string | null): number {
  return hasEnded(status ?? '') ? 3_600_000 : 86_400_000
}

export function hasEnded(status: string): boolean {
  return ENDED.has(status)
}

/** Returns whether an object is a task of one of both eras, as far as the gateway depends on it. */
export function isTask(value: unknown): value is JsonObject & { readonly taskId: string; readonly status: string } {
  return (
    isObject(value) &&
    typeof value.taskId === 'string' &&
    typeof value.status === 'string' &&
    STATUSES.has(value.status)
  )
}

/** Returns the task that a result of `tools/call` creates, with its path; null: it creates none. */
export function createdTask(
  result: unknown,
  era: Era,
): { readonly task: unknown; readonly path: readonly string[] } | null {
  if (era === 'modern') return member(result, 'resultType') === 'task' ? { task: result, path: ['result'] } : null
  const task = member(result, 'task')
  return task === undefined ? null : { task, path: ['result', 'task'] }
}

/** Returns the state of a task: its status and, if it waits for input, which requests are open. */
export function stateOf({ status, inputRequests }: JsonObject): string {
  if (status !== 'input_required' || !isObject(inputRequests)) return String(status)
  const names = JSON.stringify(Object.keys(inputRequests).sort())
  return `${status}/${createHash('sha256').update(names).digest('hex').slice(0, REQUESTS_DIGITS)}`
}

export function statusIn(state: string): string {
  return state.split('/', 1)[0] ?? state
}

/** Returns whether a request of revision 2026-07-28 declares the tasks extension. */
export function declaresTasks(message: unknown): boolean {
  const capabilities = member(member(member(message, 'params'), '_meta'), META_CAPABILITIES)
  return member(member(capabilities, 'extensions'), TASKS_EXTENSION) !== undefined
}

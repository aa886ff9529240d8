import { findSpan, isObject, type JsonObject } from '@plat/core'
import type { A2aFrame } from './frame.ts'
import type { A2aRequest } from './request.ts'

export interface NamedInResult {
  readonly tasks: readonly string[]
  readonly contexts: readonly string[]
}

/** Validators of results of a send and events of a stream (A2A 1.0, section 4.1). They return null for an invalid one. */
const KINDS: Readonly<Record<string, (content: JsonObject) => NamedInResult | null>> = {
  task: (task) => (isTask(task) ? named(task.id, task.contextId) : null),
  message: (message) =>
    typeof message.role === 'string' && Array.isArray(message.parts) ? named(message.taskId, message.contextId) : null,
  statusUpdate: (update) =>
    isId(update.taskId) && isStatus(update.status) ? named(update.taskId, update.contextId) : null,
  artifactUpdate: (update) =>
    isId(update.taskId) && isArtifact(update.artifact) ? named(update.taskId, update.contextId) : null,
}

/** Kinds that can be the result of a send; the others are only events. */
const RESULTS: ReadonlySet<string> = new Set(['task', 'message'])

/**
 * Returns the JSON-RPC response of a frame, which must have `jsonrpc` and exactly one of `result` and a valid `error`. Returns null for any
 * other message. Throws JsonError if the frame is not strict JSON.
 */
export function responseIn(frame: A2aFrame): JsonObject | null {
  const { value } = frame
  if (!isObject(value) || value.jsonrpc !== '2.0') return null
  const hasError = Object.hasOwn(value, 'error')
  if (Object.hasOwn(value, 'result') === hasError) return null
  return hasError && !isError(value.error) ? null : value
}

/** Returns true if a response of 0.3 has no result where the result is null, which the Python SDK leaves out. */
export function lacksResult({ value }: A2aFrame, method: string): boolean {
  if (method !== 'DeleteTaskPushNotificationConfig' || !isObject(value) || value.jsonrpc !== '2.0') return false
  return !Object.hasOwn(value, 'result') && !Object.hasOwn(value, 'error')
}

/** Returns true if a response has the id of the request. Integers beyond double precision are compared as written. */
export function isResponseTo(request: A2aRequest, frame: A2aFrame): boolean {
  const { value, json } = frame
  const { idValue } = request
  if (!isObject(value) || value.id !== idValue || json === null) return false
  if (typeof idValue !== 'number' || Number.isSafeInteger(idValue)) return true
  const span = findSpan(json, ['id'])
  return span !== null && Buffer.from(request.id).equals(json.subarray(span[0], span[1]))
}

function isError(error: unknown): boolean {
  return isObject(error) && Number.isSafeInteger(error.code) && typeof error.message === 'string'
}

/** Returns the ids in a result of a send or an event, or null if it is invalid. An error has no ids. */
export function namedIn(response: JsonObject): NamedInResult | null {
  if (Object.hasOwn(response, 'error')) return NOTHING
  const [kind, content] = contentOf(response.result)
  return kind === null ? null : (KINDS[kind]?.(content) ?? null)
}

/** The same for the response to a send that is not a stream. */
export function namedInSent(response: JsonObject): NamedInResult | null {
  const [kind] = contentOf(response.result)
  return kind !== null && RESULTS.has(kind) ? namedIn(response) : null
}

const NOTHING: NamedInResult = { tasks: [], contexts: [] }

/** Returns the single member of a result, whose name is its kind. */
function contentOf(result: unknown): readonly [string, JsonObject] | readonly [null, null] {
  if (!isObject(result)) return [null, null]
  const kinds = Object.keys(result).filter((name) => Object.hasOwn(KINDS, name))
  const [kind] = kinds
  const content = kind === undefined || kinds.length !== 1 ? null : result[kind]
  return kind !== undefined && isObject(content) ? [kind, content] : [null, null]
}

/** Returns null if an id is present and is not a string. */
function named(task: unknown, context: unknown): NamedInResult | null {
  const tasks = idsOf(task)
  const contexts = idsOf(context)
  return tasks === null || contexts === null ? null : { tasks, contexts }
}

/** In ProtoJSON, null and the empty string count as absent. */
function idsOf(id: unknown): readonly string[] | null {
  if (id === undefined || id === null || id === '') return []
  return typeof id === 'string' ? [id] : null
}

/** Returns true for a task with an id and a state. */
export function isTask(value: unknown): value is JsonObject & { readonly id: string } {
  return isObject(value) && isId(value.id) && isStatus(value.status)
}

function isId(id: unknown): boolean {
  return typeof id === 'string' && id !== ''
}

function isStatus(status: unknown): boolean {
  return isObject(status) && typeof status.state === 'string'
}

function isArtifact(artifact: unknown): boolean {
  return isObject(artifact) && isId(artifact.artifactId) && Array.isArray(artifact.parts)
}

/** States after which an agent sends nothing more, or waits for its caller (A2A 1.0, section 4.1.3). */
const LAST_STATES: ReadonlySet<unknown> = new Set([
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
  'TASK_STATE_REJECTED',
  'TASK_STATE_INPUT_REQUIRED',
  'TASK_STATE_AUTH_REQUIRED',
])

export class StreamProgress {
  /** True after a message or an error, after which no event may follow. */
  isOver = false
  /** True if the agent may end the stream now. */
  mayEnd = false

  /** Updates the state for the next event, which must be valid. `isFinal`: an agent of 0.3 stated that its stream ends here. */
  took(response: JsonObject, isFinal = false): void {
    const [kind, content] = contentOf(response.result)
    if (kind === null || kind === 'message') this.isOver = true
    if (kind === 'task' || kind === 'statusUpdate')
      this.mayEnd = isObject(content.status) && LAST_STATES.has(content.status.state)
    if (this.isOver || isFinal) this.mayEnd = true
  }
}

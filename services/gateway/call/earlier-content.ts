import { isObject, type JsonObject } from '@plat/core'
import type { StoredContent } from './stored-content.ts'

/**
 * Returns what a request names of earlier responses that the provider stores: responses, conversations, prompts, threads, and items without
 * their content.
 */
export function earlierContent(body: unknown, method: string): readonly StoredContent[] {
  if (!isObject(body)) return NOTHING
  if (method.startsWith('messages')) return namedBy('thread', body.thread, 'previous_message_id')
  if (method !== 'responses') return NOTHING
  return [
    ...namedBy('previous_response_id', body.previous_response_id, 'id'),
    ...namedBy('conversation', body.conversation, 'id'),
    ...namedBy('prompt', body.prompt, 'id'),
    ...(Array.isArray(body.input) ? body.input.flatMap(namedByItem) : NOTHING),
  ]
}

/** Returns the ids in a response of the Responses API that later requests may name: its own, and those of its items and containers. */
export function idsOfResponse(response: JsonObject, isStored: boolean): readonly string[] {
  const { id, output } = response
  const items = Array.isArray(output) ? output.filter(isObject) : []
  // Items that lack their content name it even where the response is not stored.
  const named = items.flatMap((item) => [
    ...(isStored || !isWhole(item) ? [item.id] : []),
    ...(item.type === 'code_interpreter_call' ? [item.container_id] : []),
  ])
  const ids = isStored ? [id, ...named] : named
  return [...new Set(ids.filter((one): one is string => typeof one === 'string' && one !== ''))].slice(0, MAX_IDS)
}

/** Most ids of one response that are kept. */
const MAX_IDS = 64

const NOTHING: readonly StoredContent[] = []

/** A name as text, or as the member of an object. */
function namedBy(param: string, value: unknown, member: string): readonly StoredContent[] {
  const id: unknown = isObject(value) ? value[member] : value
  return typeof id === 'string' && id !== '' && (member === 'id' || isObject(value)) ? [{ param, id }] : NOTHING
}

function namedByItem(item: unknown): readonly StoredContent[] {
  if (!isObject(item) || typeof item.id !== 'string' || item.id === '' || isWhole(item)) return NOTHING
  return [{ param: 'input', id: item.id }]
}

/** Types of items that have all of their content, so that their id names nothing else. */
const WHOLE: ReadonlySet<unknown> = new Set([
  ...['message', 'function_call', 'function_call_output', 'custom_tool_call', 'custom_tool_call_output'],
  ...['local_shell_call', 'local_shell_call_output', 'shell_call', 'shell_call_output'],
  ...['apply_patch_call', 'apply_patch_call_output', 'computer_call', 'computer_call_output'],
])

/** Providers read an item without a type as a message, or as a reference if it has only an id. */
function isWhole({ type, content, encrypted_content: sealed }: JsonObject): boolean {
  if (type === undefined || type === null) return content !== undefined && content !== null
  return WHOLE.has(type) || (typeof sealed === 'string' && sealed !== '')
}

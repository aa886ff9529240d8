import { isObject, type JsonObject } from '@plat/core'
import { isSet, isTokens } from './checks.ts'

/** Completes "the upstream sent …"; null: the shape is as it should be. */
export type ShapeFault = string | null

/** Counts of a usage report: names of members, and of members of the objects in it. */
export interface UsageShape {
  readonly counts: readonly string[]
  readonly details: readonly (readonly [object: string, counts: readonly string[]])[]
}

export const OPENAI_USAGE: UsageShape = {
  counts: ['prompt_tokens', 'completion_tokens'],
  details: [
    ['prompt_tokens_details', ['cached_tokens', 'cache_write_tokens']],
    ['completion_tokens_details', ['reasoning_tokens']],
  ],
}

export const RESPONSES_USAGE: UsageShape = {
  counts: ['input_tokens', 'output_tokens'],
  details: [
    ['input_tokens_details', ['cached_tokens']],
    ['output_tokens_details', ['reasoning_tokens']],
  ],
}

export const ANTHROPIC_USAGE: UsageShape = {
  counts: ['input_tokens', 'output_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens'],
  details: [
    ['cache_creation', ['ephemeral_5m_input_tokens', 'ephemeral_1h_input_tokens']],
    ['server_tool_use', ['web_search_requests', 'web_fetch_requests']],
  ],
}

/** Calls are metered by these counts: what is there must be a count, and null means absent. */
export function usageFault(usage: unknown, { counts, details }: UsageShape): ShapeFault {
  if (!isSet(usage)) return null
  if (!isObject(usage) || !areCounts(usage, counts)) return BAD_USAGE
  for (const [name, inside] of details) {
    const object = usage[name]
    if (isSet(object) && !(isObject(object) && areCounts(object, inside))) return BAD_USAGE
  }
  return null
}

const BAD_USAGE = 'a usage report that does not hold whole numbers'

function areCounts(object: JsonObject, names: readonly string[]): boolean {
  return names.every((name) => !isSet(object[name]) || isTokens(object[name]))
}

/** Whole completions and chunks of OpenAI's API: the choices, and what reviews read in them. */
export function choicesFault({ choices, usage }: JsonObject): ShapeFault {
  if (!Array.isArray(choices) || !choices.every(isChoice)) return 'a completion without valid choices'
  return usageFault(usage, OPENAI_USAGE)
}

/** Redaction joins pieces by `index`, and flushes them at `finish_reason`. */
function isChoice(choice: unknown): boolean {
  if (!isObject(choice)) return false
  const { index, finish_reason: reason, delta, message } = choice
  const isEnd = !isSet(reason) || typeof reason === 'string'
  return isEnd && (!isSet(index) || isTokens(index)) && isObjectIfSet(delta) && isObjectIfSet(message)
}

function isObjectIfSet(value: unknown): boolean {
  return !isSet(value) || isObject(value)
}

/** The list of models, or one of them. */
export function modelsFault(value: unknown): ShapeFault {
  return isObject(value) || Array.isArray(value) ? null : 'what is not a list of models'
}

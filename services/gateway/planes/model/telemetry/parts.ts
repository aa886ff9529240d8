import { isObject, type JsonObject, member } from '@plat/core'
import type { NestedJson } from '../../wire/nested.ts'

// Parts of messages as OpenTelemetry's conventions for generative AI write them (1.41.0, JSON schemas of `gen_ai.input.messages` and
// `gen_ai.output.messages`).

export function textPart(content: string): JsonObject {
  return { type: 'text', content }
}

export function reasoningPart(content: string): JsonObject {
  return { type: 'reasoning', content }
}

/** A tool call of the model. */
function callPart(id: unknown, name: unknown, args: unknown): JsonObject {
  return { type: 'tool_call', id, name, arguments: args }
}

/** A tool call whose arguments are JSON. Reported as text if they are not, or too large. */
export function jsonCallPart(id: unknown, name: unknown, json: unknown, nested: NestedJson): JsonObject {
  return callPart(id, name, typeof json === 'string' ? (nested.parse(json) ?? json) : json)
}

export function resultPart(id: unknown, response: unknown): JsonObject {
  return { type: 'tool_call_response', id, response }
}

/** Reads a provider's content: a text, or a list of parts. Images and files are reported without their bytes. */
export function partsOf(content: unknown): readonly JsonObject[] {
  if (typeof content === 'string') return content === '' ? [] : [textPart(content)]
  return Array.isArray(content) ? content.filter(isObject).map(partOf) : []
}

/** A part of OpenAI's or Anthropic's API. */
function partOf(part: JsonObject): JsonObject {
  const { type } = part
  if (typeof part.text === 'string') return textPart(part.text)
  if (typeof part.refusal === 'string') return textPart(part.refusal)
  if (typeof part.thinking === 'string') return reasoningPart(part.thinking)
  if (type === 'tool_use') return callPart(part.id, part.name, part.input)
  if (type === 'tool_result') return resultPart(part.tool_use_id, resultContent(part.content))
  return { type: typeof type === 'string' ? type : 'unknown' }
}

/** The answer of a tool: its text, or its parts. */
function resultContent(content: unknown): unknown {
  return typeof content === 'string' ? content : partsOf(content)
}

/** The calls of tools in a message of OpenAI's chat. */
export function callsIn(message: unknown, nested: NestedJson): readonly JsonObject[] {
  const calls = member(message, 'tool_calls')
  const known = Array.isArray(calls) ? calls.filter(isObject) : []
  return known.map(({ id, function: called }) =>
    jsonCallPart(id, member(called, 'name'), member(called, 'arguments'), nested),
  )
}

/** An item of the input or output of OpenAI's `responses`. */
export function itemParts(item: JsonObject, nested: NestedJson): readonly JsonObject[] {
  const { type } = item
  if (type === 'function_call') return [jsonCallPart(item.call_id, item.name, item.arguments, nested)]
  if (type === 'function_call_output') return [resultPart(item.call_id, resultContent(item.output))]
  if (type === 'reasoning') return partsOf(item.summary)
  return type === undefined || type === 'message' ? partsOf(item.content) : [{ type }]
}

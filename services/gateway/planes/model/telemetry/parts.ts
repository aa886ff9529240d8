import { isObject, type JsonObject } from '@plat/core'
import { member, parsedText } from '../../wire/json.ts'

// Parts of messages as OpenTelemetry's conventions for generative AI write them (1.41.0, JSON schemas of `gen_ai.input.messages` and
// `gen_ai.output.messages`).

export function textPart(content: string): JsonObject {
  return { type: 'text', content }
}

export function reasoningPart(content: string): JsonObject {
  return { type: 'reasoning', content }
}

/** A tool call of the model; `args` is JSON, or its parsed value. */
export function callPart(id: unknown, name: unknown, args: unknown): JsonObject {
  const value = typeof args === 'string' ? (parsedText(args) ?? args) : args
  return { type: 'tool_call', id, name, arguments: value }
}

/** The result of a tool call. */
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
  if (type === 'tool_result') return resultPart(part.tool_use_id, saidIn(part.content))
  return { type: typeof type === 'string' ? type : 'unknown' }
}

/** The answer of a tool: its text, or its parts. */
function saidIn(content: unknown): unknown {
  return typeof content === 'string' ? content : partsOf(content)
}

/** The calls of tools in a message of OpenAI's chat. */
export function callsIn(message: unknown): readonly JsonObject[] {
  const calls = member(message, 'tool_calls')
  const known = Array.isArray(calls) ? calls.filter(isObject) : []
  return known.map((call) => callPart(call.id, member(call.function, 'name'), member(call.function, 'arguments')))
}

/** An item of the input or output of OpenAI's `responses`. */
export function itemParts(item: JsonObject): readonly JsonObject[] {
  const { type } = item
  if (type === 'function_call') return [callPart(item.call_id, item.name, item.arguments)]
  if (type === 'function_call_output') return [resultPart(item.call_id, saidIn(item.output))]
  if (type === 'reasoning') return partsOf(item.summary)
  return type === undefined || type === 'message' ? partsOf(item.content) : [{ type }]
}

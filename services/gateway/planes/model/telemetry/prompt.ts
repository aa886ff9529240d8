import { isObject, type JsonObject, member } from '@plat/core'
import { NestedJson } from '../../wire/nested.ts'
import type { ModelBody } from '../request.ts'
import { callsIn, itemParts, partsOf, resultPart, textPart } from './parts.ts'

/** The input of a model in the format of OpenTelemetry's conventions. */
export interface Prompt {
  readonly instructions: readonly JsonObject[]
  readonly messages: readonly JsonObject[]
}

/** Returns null for a request without messages, such as one for embeddings. */
export function promptOf({ dialect, value }: ModelBody): Prompt | null {
  return Object.hasOwn(PROMPTS, dialect.method) ? (PROMPTS[dialect.method]?.(value, new NestedJson()) ?? null) : null
}

/** By the endpoint below `/v1/`. */
const PROMPTS: Readonly<Record<string, (value: JsonObject, nested: NestedJson) => Prompt>> = {
  'chat/completions': ({ messages }, nested) => ({
    instructions: [],
    messages: objects(messages).map((message) => chatMessage(message, nested)),
  }),
  completions: ({ prompt }) => ({
    instructions: [],
    messages: texts(prompt).map((text) => ({ role: 'user', parts: [textPart(text)] })),
  }),
  messages: ({ system, messages }) => ({
    instructions: partsOf(system),
    messages: objects(messages).map(({ role, content }) => ({ role, parts: partsOf(content) })),
  }),
  generateContent: ({ systemInstruction: system, contents }) => ({
    instructions: objects(member(system, 'parts')).flatMap(googlePart),
    messages: objects(contents).map(({ role, parts }) => ({
      role: role === 'model' ? 'assistant' : 'user',
      parts: objects(parts).flatMap(googlePart),
    })),
  }),
  responses: ({ instructions, input }, nested) => ({
    instructions: partsOf(instructions),
    messages:
      typeof input === 'string'
        ? [{ role: 'user', parts: [textPart(input)] }]
        : objects(input).map((one) => item(one, nested)),
  }),
}

function googlePart({ text }: JsonObject): readonly JsonObject[] {
  return typeof text === 'string' ? [textPart(text)] : []
}

function chatMessage(message: JsonObject, nested: NestedJson): JsonObject {
  const { role, content, tool_call_id: id } = message
  if (role === 'tool')
    return { role, parts: [resultPart(id, typeof content === 'string' ? content : partsOf(content))] }
  return { role, parts: [...partsOf(content), ...callsIn(message, nested)] }
}

function item(one: JsonObject, nested: NestedJson): JsonObject {
  const role = one.type === 'function_call' ? 'assistant' : one.type === 'function_call_output' ? 'tool' : one.role
  return { role: role ?? 'user', parts: itemParts(one, nested) }
}

function objects(list: unknown): readonly JsonObject[] {
  return Array.isArray(list) ? list.filter(isObject) : []
}

/** Prompts that are lists of tokens hold no words. */
function texts(prompt: unknown): readonly string[] {
  const all: readonly unknown[] = Array.isArray(prompt) ? prompt : [prompt]
  return all.filter((one) => typeof one === 'string')
}

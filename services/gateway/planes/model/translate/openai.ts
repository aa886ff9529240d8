import { isObject, type JsonObject, member } from '@plat/core'
import type { Usage } from '../../../call/index.ts'
import { isSet } from '../dialects/checks.ts'
import { InvalidResponseError } from '../invalid.ts'
import {
  type Format,
  type Option,
  type Part,
  type Prompt,
  type ReadPrompt,
  type Tool,
  type Turn,
  UntranslatableError,
} from './prompt.ts'
import { countOf, type FinishReason, finishOf, type ResponsePart, toolCallPart } from './response-parts.ts'

const OPTIONS: readonly Option[] = [
  'temperature',
  'top_p',
  'stop',
  'seed',
  'frequency_penalty',
  'presence_penalty',
  'parallel_tool_calls',
  'reasoning_effort',
  'response_format',
  'user',
]

/** A chat as `chat/completions` reads it. `reasoning`: the model takes `max_completion_tokens`. Throws `UntranslatableError`. */
export function chatRequest(read: ReadPrompt, { model, reasoning }: { model: string; reasoning: boolean }): JsonObject {
  const prompt = read(OPTIONS)
  const { system, maxTokens, temperature, topP, seed, frequencyPenalty, presencePenalty, stop, effort, user } = prompt
  const instructions = system.map((content) => ({ role: 'system', content }))
  return {
    model,
    messages: [...instructions, ...prompt.turns.flatMap(messagesOf)],
    ...(maxTokens !== null && { [reasoning ? 'max_completion_tokens' : 'max_tokens']: maxTokens }),
    ...(temperature !== null && { temperature }),
    ...(topP !== null && { top_p: topP }),
    ...(seed !== null && { seed }),
    ...(frequencyPenalty !== null && { frequency_penalty: frequencyPenalty }),
    ...(presencePenalty !== null && { presence_penalty: presencePenalty }),
    ...(stop.length > 0 && { stop }),
    ...(effort !== null && { reasoning_effort: effort }),
    ...(user !== null && { user }),
    ...toolsOf(prompt),
    ...formatOf(prompt.format),
    ...(prompt.stream && { stream: true, stream_options: { include_usage: true } }),
  }
}

/** Results of tools are separate messages, and directly follow the calls. */
function messagesOf({ side, parts }: Turn): readonly JsonObject[] {
  if (side === 'assistant') return [assistantOf(parts)]
  const results = parts.flatMap((part) =>
    part.kind === 'result' ? [{ role: 'tool', tool_call_id: part.id, content: part.text }] : [],
  )
  const content = parts.filter(({ kind }) => kind !== 'result').map(contentOf)
  return content.length === 0 ? results : [...results, { role: 'user', content }]
}

function assistantOf(parts: readonly Part[]): JsonObject {
  const texts: string[] = []
  const calls: JsonObject[] = []
  for (const part of parts) {
    if (part.kind === 'text') texts.push(part.text)
    else if (part.kind === 'call') calls.push(callOf(part))
    else if (part.kind !== 'result') throw new UntranslatableError(part.at, 'cannot be part of a message of the model')
  }
  return {
    role: 'assistant',
    content: texts.length === 0 ? null : texts.join(''),
    ...(calls.length > 0 && { tool_calls: calls }),
  }
}

function callOf({ id, name, args, signature }: Extract<Part, { kind: 'call' }>): JsonObject {
  const extra = signature === null ? null : { extra_content: { google: { thought_signature: signature } } }
  return { id, type: 'function', function: { name, arguments: JSON.stringify(args) }, ...extra }
}

function contentOf(part: Part): JsonObject {
  switch (part.kind) {
    case 'text':
      return { type: 'text', text: part.text }
    case 'link':
      return { type: 'image_url', image_url: { url: part.url } }
    case 'data': {
      if (part.of === 'audio')
        return { type: 'input_audio', input_audio: { data: part.data, format: part.type.replace(/^audio\//, '') } }
      const url = `data:${part.type};base64,${part.data}`
      return part.of === 'image'
        ? { type: 'image_url', image_url: { url } }
        : { type: 'file', file: { file_data: url, filename: part.name || 'document' } }
    }
    default:
      throw new UntranslatableError('messages', 'hold a tool call in a message of the user')
  }
}

function toolsOf({ tools, choice, parallel }: Prompt): JsonObject {
  if (tools.length === 0) return {}
  return {
    tools: tools.map(toolOf),
    ...(choice !== 'auto' && {
      tool_choice: typeof choice === 'string' ? choice : { type: 'function', function: choice },
    }),
    ...(!parallel && { parallel_tool_calls: false }),
  }
}

function toolOf({ name, description, schema, strict, hosted, at }: Tool): JsonObject {
  if (hosted !== null) throw new UntranslatableError(`${at}.type`, 'must be a tool of the agent at this provider')
  return {
    type: 'function',
    function: {
      name,
      ...(description !== null && { description }),
      ...(schema !== null && { parameters: schema }),
      ...(strict && { strict }),
    },
  }
}

function formatOf(format: Format): JsonObject {
  if (format.kind === 'text') return {}
  if (format.kind === 'json') return { response_format: { type: 'json_object' } }
  const { name, description, schema, strict } = format
  const own = { name, schema, ...(description !== null && { description }), ...(strict !== null && { strict }) }
  return { response_format: { type: 'json_schema', json_schema: own } }
}

const ENDS: Readonly<Record<string, FinishReason>> = {
  stop: 'stop',
  length: 'length',
  tool_calls: 'tool_calls',
  content_filter: 'content_filter',
}

/** A whole chat completion. Throws `InvalidResponseError`. */
export function chatAnswer({ choices, usage }: JsonObject): readonly ResponsePart[] {
  const [choice]: readonly unknown[] = Array.isArray(choices) ? choices : []
  const message = member(choice, 'message')
  if (!isObject(message)) throw new InvalidResponseError('a completion without a message')
  const calls = Array.isArray(message.tool_calls) ? message.tool_calls : []
  return [
    ...contentParts(message),
    ...calls.flatMap((call: unknown) => [startOf(call), argumentsOf(call)]),
    finishOf(ENDS, member(choice, 'finish_reason'), 'the provider'),
    ...usageOf(usage),
  ]
}

/** Reads the chunks of a streamed chat completion. */
export class ChatReader {
  /** Index of the call whose arguments come. */
  #index: unknown = null

  /** Throws `InvalidResponseError`. */
  partsOf({ choices, usage, error }: JsonObject): readonly ResponsePart[] {
    if (isSet(error)) throw new InvalidResponseError('an error in its stream')
    const [choice]: readonly unknown[] = Array.isArray(choices) ? choices : []
    const delta = member(choice, 'delta')
    const reason = member(choice, 'finish_reason')
    const calls = member(delta, 'tool_calls')
    return [
      ...(isObject(delta) ? contentParts(delta) : []),
      ...(Array.isArray(calls) ? calls.flatMap((call: unknown) => this.#call(call)) : []),
      ...(isSet(reason) ? [finishOf(ENDS, reason, 'the provider')] : []),
      ...usageOf(usage),
    ]
  }

  /** A call begins with its name; arguments that follow belong to the call that began last. */
  #call(call: unknown): readonly ResponsePart[] {
    const index = member(call, 'index')
    const isStart = isSet(member(member(call, 'function'), 'name')) && index !== this.#index
    if (isStart) this.#index = index
    else if (index !== this.#index) throw new InvalidResponseError('arguments of two tool calls at a time')
    return isStart ? [startOf(call), argumentsOf(call)] : [argumentsOf(call)]
  }
}

function contentParts({ content, refusal, reasoning_content: reasoning }: JsonObject): readonly ResponsePart[] {
  const thought: readonly ResponsePart[] =
    typeof reasoning === 'string' && reasoning !== '' ? [{ kind: 'reasoning', text: reasoning }] : []
  const texts = [content, refusal].flatMap((text): readonly ResponsePart[] =>
    typeof text === 'string' && text !== '' ? [{ kind: 'text', text }] : [],
  )
  return [...thought, ...texts]
}

function startOf(call: unknown): ResponsePart {
  const part = toolCallPart(member(call, 'id'), member(member(call, 'function'), 'name'), 'the provider')
  const signature = member(member(member(call, 'extra_content'), 'google'), 'thought_signature')
  return part.kind === 'call' && typeof signature === 'string' ? { ...part, signature } : part
}

function argumentsOf(call: unknown): ResponsePart {
  const text = member(member(call, 'function'), 'arguments')
  return { kind: 'arguments', text: typeof text === 'string' ? text : '' }
}

/** The prompt includes cached tokens, the completion those of thoughts. */
function usageOf(usage: unknown): readonly ResponsePart[] {
  if (!isObject(usage)) return []
  const counted: Usage = {
    prompt: countOf(usage.prompt_tokens),
    completion: countOf(usage.completion_tokens),
    cachedRead: countOf(member(usage.prompt_tokens_details, 'cached_tokens')),
    cachedWrite: 0,
    reasoning: countOf(member(usage.completion_tokens_details, 'reasoning_tokens')),
  }
  return [{ kind: 'usage', usage: counted }]
}

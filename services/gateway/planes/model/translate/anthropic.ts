import { type JsonObject, member } from '@plat/core'
import type { Usage } from '../../../call/index.ts'
import { isSet } from '../dialects/checks.ts'
import { usageOf } from '../dialects/messages.ts'
import { InvalidResponseError } from '../invalid.ts'
import { type Option, type Part, type Prompt, type ReadPrompt, type Tool, UntranslatableError } from './prompt.ts'
import { type FinishReason, finishOf, type ResponsePart, toolCallPart } from './response-parts.ts'
import { ArgumentTexts, type ProviderObject } from './streams.ts'

const OPTIONS: readonly Option[] = [
  'temperature',
  'top_p',
  'top_k',
  'stop',
  'parallel_tool_calls',
  'response_format',
  'user',
]

/** Anthropic wants a limit in every request. What a call without one is held money for is the same. */
export const USUAL_MAX_TOKENS = 4096

/** A chat as `messages` of Anthropic reads it, without the name of the model. Throws `UntranslatableError`. */
export function anthropicRequest(read: ReadPrompt): JsonObject {
  const prompt = read(OPTIONS)
  const { system, turns, maxTokens, temperature, topP, topK, stop, user, stream } = prompt
  return {
    max_tokens: maxTokens ?? USUAL_MAX_TOKENS,
    messages: turns.map(({ side, parts }) => ({ role: side, content: parts.map(blockOf) })),
    ...(system.length > 0 && { system: system.map((text) => ({ type: 'text', text })) }),
    ...(temperature !== null && { temperature }),
    ...(topP !== null && { top_p: topP }),
    ...(topK !== null && { top_k: topK }),
    ...(stop.length > 0 && { stop_sequences: stop }),
    ...(user !== null && { metadata: { user_id: user } }),
    ...toolsOf(prompt),
    ...outputOf(prompt),
    ...(stream && { stream }),
  }
}

function blockOf(part: Part): JsonObject {
  switch (part.kind) {
    case 'text':
      return { type: 'text', text: part.text }
    case 'call':
      return { type: 'tool_use', id: part.id, name: part.name, input: part.args }
    case 'result':
      return { type: 'tool_result', tool_use_id: part.id, content: part.text, ...(part.failed && { is_error: true }) }
    case 'link':
      return { type: 'image', source: { type: 'url', url: part.url } }
    case 'data': {
      if (part.of === 'audio' || (part.of === 'document' && part.type !== 'application/pdf'))
        throw new UntranslatableError(part.at, `holds ${part.type}, which Anthropic's models do not take`)
      return { type: part.of, source: { type: 'base64', media_type: part.type, data: part.data } }
    }
  }
}

function toolsOf({ tools, choice, parallel }: Prompt): JsonObject {
  if (tools.length === 0) return {}
  const type = typeof choice !== 'string' ? 'tool' : choice === 'required' ? 'any' : choice
  const alone = !parallel && type !== 'none' && { disable_parallel_tool_use: true }
  const tool_choice = { type, ...(typeof choice !== 'string' && { name: choice.name }), ...alone }
  return { tools: tools.map(toolOf), tool_choice }
}

function toolOf({ name, description, schema, strict, hosted, at }: Tool): JsonObject {
  if (hosted?.type === 'custom')
    throw new UntranslatableError(`${at}.type`, 'must be function: a tool of free text has no counterpart')
  // One of Anthropic's own, which the route allows: it is written as Anthropic has it.
  if (hosted !== null) return hosted
  return {
    name,
    ...(description !== null && { description }),
    input_schema: schema ?? { type: 'object', properties: {} },
    ...(strict && { strict }),
  }
}

function outputOf({ format, names }: Prompt): JsonObject {
  if (format.kind === 'text') return {}
  if (format.kind === 'json')
    throw new UntranslatableError(names.format, 'must be json_schema: Anthropic wants to know which JSON')
  return { output_config: { format: { type: 'json_schema', schema: format.schema } } }
}

const ENDS: Readonly<Record<string, FinishReason>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  tool_use: 'tool_calls',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  refusal: 'content_filter',
}

/** A whole response of `messages`. Throws `InvalidResponseError`. */
export function anthropicAnswer(response: ProviderObject): readonly ResponsePart[] {
  const { content, stop_reason: reason, usage } = response.value
  if (!Array.isArray(content)) throw new InvalidResponseError('a response of Anthropic without content')
  const texts = new ArgumentTexts(response, ['content'], ['input'])
  const parts = content.flatMap((block: unknown, index) => blockParts(block, () => texts.textOf(index)))
  return [...parts, finishOf(ENDS, reason, 'Anthropic'), ...usageParts(usageOf(usage))]
}

function blockParts(block: unknown, argumentsOf: () => string): readonly ResponsePart[] {
  const started = startParts(block)
  return member(block, 'type') === 'tool_use' ? [...started, { kind: 'arguments', text: argumentsOf() }] : started
}

function startParts(block: unknown): readonly ResponsePart[] {
  const { text, thinking } = { text: member(block, 'text'), thinking: member(block, 'thinking') }
  if (member(block, 'type') === 'tool_use')
    return [toolCallPart(member(block, 'id'), member(block, 'name'), 'Anthropic')]
  if (typeof text === 'string' && text !== '') return [{ kind: 'text', text }]
  return typeof thinking === 'string' && thinking !== '' ? [{ kind: 'reasoning', text: thinking }] : []
}

/** Reads the events of a streamed response. */
export class AnthropicReader {
  #usage: Usage | undefined
  /** Blocks of tools that run at Anthropic have arguments as well, which are not translated. */
  #isOwnTool = false

  /** Throws `InvalidResponseError`. */
  partsOf(value: JsonObject): readonly ResponsePart[] {
    switch (value.type) {
      case 'message_start':
        this.#usage = usageOf(member(value.message, 'usage')) ?? undefined
        return []
      case 'content_block_start':
        this.#isOwnTool = member(value.content_block, 'type') === 'tool_use'
        return startParts(value.content_block)
      case 'content_block_delta':
        return this.#delta(value.delta)
      case 'message_delta':
        return this.#last(value)
      case 'error':
        throw new InvalidResponseError('Anthropic reports an error')
      default:
        return []
    }
  }

  #delta(delta: unknown): readonly ResponsePart[] {
    const input = member(delta, 'partial_json')
    if (typeof input === 'string') return this.#isOwnTool && input !== '' ? [{ kind: 'arguments', text: input }] : []
    return startParts(delta)
  }

  /** The counts of the beginning stand for those that the end leaves out. */
  #last(value: JsonObject): readonly ResponsePart[] {
    this.#usage = usageOf(value.usage, this.#usage) ?? this.#usage
    const reason = member(value.delta, 'stop_reason')
    return isSet(reason) ? [finishOf(ENDS, reason, 'Anthropic'), ...usageParts(this.#usage ?? null)] : []
  }
}

function usageParts(usage: Usage | null): readonly ResponsePart[] {
  return usage === null ? [] : [{ kind: 'usage', usage }]
}

/** Version member that clouds with Anthropic's models require instead of a header. */
export const CLOUD_VERSIONS = { bedrock: 'bedrock-2023-05-31', vertex: 'vertex-2023-10-16' } as const

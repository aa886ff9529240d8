import { isObject, type JsonObject, member } from '@plat/core'
import { isSet } from '../dialects/checks.ts'
import { number, stopOf } from './chat.ts'
import { CalledTools, onlyMembers, texts } from './messages.ts'
import {
  type Format,
  type Option,
  type Part,
  type Prompt,
  type PromptNames,
  type Tool,
  type Turn,
  UntranslatableError,
} from './prompt.ts'

/** Members of a request of `messages` that can be translated for every provider. A mark for caching has no effect on a response. */
const UNDERSTOOD = [
  'model',
  'messages',
  'system',
  'stream',
  'max_tokens',
  'tools',
  'tool_choice',
  'thinking',
  'output_config',
  'metadata',
  'cache_control',
]
/** Members of Anthropic's API by the settings that only some providers support. */
const SETTINGS: readonly (readonly [Option, string])[] = [
  ['temperature', 'temperature'],
  ['top_p', 'top_p'],
  ['top_k', 'top_k'],
  ['stop', 'stop_sequences'],
]
/** Values of `service_tier` that are equivalent to leaving it out. */
const PLAIN_TIERS: ReadonlySet<unknown> = new Set(['auto', 'standard_only'])

/** Reads a request of Anthropic's `messages` for a provider that supports `options`. Throws `UntranslatableError`. */
export function readClaude(value: JsonObject, options: readonly Option[]): Prompt {
  const { service_tier: tier, ...rest } = value
  if (isSet(tier) && !PLAIN_TIERS.has(tier))
    throw new UntranslatableError('service_tier', 'has no counterpart at the provider of this route')
  const settings = SETTINGS.filter(([option]) => options.includes(option)).map(([, name]) => name)
  onlyMembers(rest, [...UNDERSTOOD, ...settings], '')
  const { parallel, choice } = choiceOf(value.tool_choice, options)
  const effort = effortOf(value, options)
  return {
    system: systemOf(value.system),
    turns: turnsOf(value.messages),
    tools: toolsOf(value.tools),
    choice,
    parallel,
    maxTokens: number(value, 'max_tokens'),
    temperature: number(value, 'temperature'),
    topP: number(value, 'top_p'),
    topK: number(value, 'top_k'),
    seed: null,
    frequencyPenalty: null,
    presencePenalty: null,
    stop: stopOf(value.stop_sequences),
    format: formatOf(value.output_config, options),
    effort: effort.word,
    user: userOf(value.metadata, options),
    stream: value.stream === true,
    names: { ...NAMES, effort: effort.name },
  }
}

const NAMES: PromptNames = {
  format: 'output_config.format',
  choice: 'tool_choice',
  effort: 'thinking',
  parallel: 'tool_choice.disable_parallel_tool_use',
}

function systemOf(system: unknown): readonly string[] {
  if (!isSet(system)) return []
  const parts = Array.isArray(system)
    ? system.flatMap((block, at) => blockOf(block, `system[${at}]`, NO_CALLS))
    : textOf(system)
  return parts.flatMap((part) => (part.kind === 'text' ? [part.text] : []))
}

function textOf(text: unknown): readonly Part[] {
  if (typeof text !== 'string') throw new UntranslatableError('system', 'must be text or a list of blocks of text')
  return texts(text)
}

const NO_CALLS = new CalledTools()

function turnsOf(messages: unknown): readonly Turn[] {
  if (!Array.isArray(messages)) throw new UntranslatableError('messages', 'must be a list')
  const turns: { side: Turn['side']; parts: Part[] }[] = []
  const calls = new CalledTools()
  for (const [index, message] of messages.entries()) {
    const at = `messages[${index}]`
    const role = member(message, 'role')
    if (!isObject(message) || (role !== 'user' && role !== 'assistant'))
      throw new UntranslatableError(`${at}.role`, 'must be user or assistant')
    onlyMembers(message, ['role', 'content'], at)
    const parts = contentOf(message.content, `${at}.content`, calls)
    if (parts.length === 0) continue
    const last = turns.at(-1)
    if (last?.side !== role) turns.push({ side: role, parts: [...parts] })
    else for (const part of parts) last.parts.push(part)
  }
  return turns
}

function contentOf(content: unknown, at: string, calls: CalledTools): readonly Part[] {
  if (typeof content === 'string') return texts(content)
  if (!Array.isArray(content)) throw new UntranslatableError(at, 'must be text or a list of blocks')
  return content.flatMap((block: unknown, index) => blockOf(block, `${at}[${index}]`, calls))
}

/** Members of blocks that say nothing to a model. */
const HINTS = ['type', 'cache_control'] as const

function blockOf(block: unknown, at: string, calls: CalledTools): readonly Part[] {
  if (!isObject(block)) throw new UntranslatableError(at, 'must be a block')
  switch (block.type) {
    case 'text': {
      onlyMembers(block, [...HINTS, 'text', 'citations'], at)
      if (typeof block.text !== 'string') throw new UntranslatableError(`${at}.text`, 'must be text')
      return texts(block.text)
    }
    case 'image':
      onlyMembers(block, [...HINTS, 'source'], at)
      return [sourceOf(block.source, `${at}.source`, { of: 'image', name: '' })]
    case 'document': {
      onlyMembers(block, [...HINTS, 'source', 'title', ...(isOff(block.citations) ? ['citations'] : [])], at)
      const name = typeof block.title === 'string' ? block.title : ''
      return [sourceOf(block.source, `${at}.source`, { of: 'document', name })]
    }
    case 'tool_use':
      return [callOf(block, at, calls)]
    case 'tool_result':
      return [resultOf(block, at, calls)]
    // Thoughts of a model are signed by its provider, and no other can read them.
    case 'thinking':
    case 'redacted_thinking':
      return []
    default:
      throw new UntranslatableError(`${at}.type`, 'is not a type of block that can be translated')
  }
}

function isOff(citations: unknown): boolean {
  return member(citations, 'enabled') === false
}

function sourceOf(source: unknown, at: string, { of, name }: { of: 'image' | 'document'; name: string }): Part {
  const { type, data, media_type: media, url } = isObject(source) ? source : {}
  if (type === 'base64' && typeof data === 'string' && typeof media === 'string')
    return { kind: 'data', of, type: media, data, name, at }
  if (type === 'url' && typeof url === 'string' && of === 'image') return { kind: 'link', url, at }
  if (type === 'text' && typeof data === 'string')
    return { kind: 'data', of, type: 'text/plain', data: Buffer.from(data).toString('base64'), name, at }
  throw new UntranslatableError(`${at}.type`, of === 'image' ? 'must be base64 or url' : 'must be base64 or text')
}

function callOf(block: JsonObject, at: string, calls: CalledTools): Part {
  onlyMembers(block, [...HINTS, 'id', 'name', 'input', 'extra_content', 'caller'], at)
  const { id, name, input } = block
  if (typeof id !== 'string' || typeof name !== 'string' || !isObject(input))
    throw new UntranslatableError(at, 'must be a call of a tool with id, name and input')
  calls.add(id, name, at)
  const signature = member(member(block.extra_content, 'google'), 'thought_signature')
  return { kind: 'call', id, name, args: input, signature: typeof signature === 'string' ? signature : null }
}

function resultOf(block: JsonObject, at: string, calls: CalledTools): Part {
  onlyMembers(block, [...HINTS, 'tool_use_id', 'content', 'is_error'], at)
  const { tool_use_id: id, content, is_error: failed } = block
  const name = typeof id === 'string' ? calls.get(id) : undefined
  if (typeof id !== 'string' || name === undefined)
    throw new UntranslatableError(`${at}.tool_use_id`, 'names no tool call of a message before')
  const parts = isSet(content) ? contentOf(content, `${at}.content`, NO_CALLS) : []
  const text = parts.map((part) => {
    if (part.kind !== 'text') throw new UntranslatableError(`${at}.content`, 'must be text')
    return part.text
  })
  return { kind: 'result', id, name, text: text.join(''), failed: failed === true }
}

function toolsOf(tools: unknown): readonly Tool[] {
  if (!isSet(tools)) return []
  if (!Array.isArray(tools)) throw new UntranslatableError('tools', 'must be a list')
  return tools.map((tool: unknown, index): Tool => {
    const at = `tools[${index}]`
    if (!isObject(tool)) throw new UntranslatableError(at, 'must be an object')
    if (isSet(tool.type) && tool.type !== 'custom')
      return { name: String(tool.type), description: null, schema: null, strict: false, hosted: tool, at }
    onlyMembers(tool, [...HINTS, 'name', 'description', 'input_schema', 'strict', 'eager_input_streaming'], at)
    const { name, description, input_schema: schema, strict } = tool
    if (typeof name !== 'string') throw new UntranslatableError(`${at}.name`, 'is required')
    if (!isObject(schema)) throw new UntranslatableError(`${at}.input_schema`, 'must be a JSON Schema')
    const text = typeof description === 'string' ? description : null
    return { name, description: text, schema, strict: strict === true, hosted: null, at }
  })
}

function choiceOf(choice: unknown, options: readonly Option[]): Pick<Prompt, 'choice' | 'parallel'> {
  if (!isSet(choice)) return { choice: 'auto', parallel: true }
  const { type, name, disable_parallel_tool_use: alone } = isObject(choice) ? choice : {}
  const parallel = alone !== true
  if (!parallel && !options.includes('parallel_tool_calls'))
    throw new UntranslatableError(NAMES.parallel, 'has no counterpart at the provider of this route')
  if (type === 'auto' || type === 'none') return { choice: type, parallel }
  if (type === 'any') return { choice: 'required', parallel }
  if (type === 'tool' && typeof name === 'string') return { choice: { name }, parallel }
  throw new UntranslatableError('tool_choice', 'must be of type auto, any, tool or none')
}

/** Most tokens of thought for each word of `reasoning_effort`; more are `high`. */
const EFFORTS: readonly (readonly [tokens: number, word: string])[] = [
  [2048, 'low'],
  [12_288, 'medium'],
]

/** `output_config.effort` states the effort, `thinking` a number of tokens. */
function effortOf(
  value: JsonObject,
  options: readonly Option[],
): { readonly word: string | null; readonly name: string } {
  const stated = member(value.output_config, 'effort')
  const tokens = member(value.thinking, 'budget_tokens')
  const isThinking = member(value.thinking, 'type') === 'enabled'
  const name = isSet(stated) ? 'output_config.effort' : 'thinking'
  if (!isSet(stated) && !isThinking) return { word: null, name }
  if (!options.includes('reasoning_effort'))
    throw new UntranslatableError(name, 'has no counterpart at the provider of this route')
  if (isSet(stated)) return { word: String(stated), name }
  if (typeof tokens !== 'number') throw new UntranslatableError('thinking.budget_tokens', 'must be a number')
  return { word: EFFORTS.find(([most]) => tokens <= most)?.[1] ?? 'high', name }
}

function formatOf(config: unknown, options: readonly Option[]): Format {
  if (isObject(config)) onlyMembers(config, ['effort', 'format'], 'output_config')
  const format = member(config, 'format')
  if (!isSet(format)) return { kind: 'text' }
  const schema = member(format, 'schema')
  if (!options.includes('response_format') || member(format, 'type') !== 'json_schema' || !isObject(schema))
    throw new UntranslatableError(
      NAMES.format,
      'must be a json_schema, and the provider must support structured output',
    )
  return { kind: 'schema', name: 'answer', description: null, schema, strict: true }
}

function userOf(metadata: unknown, options: readonly Option[]): string | null {
  if (isObject(metadata)) onlyMembers(metadata, ['user_id'], 'metadata')
  const user = member(metadata, 'user_id')
  // It names the user for the provider's checks of abuse, and has no effect on a response.
  return typeof user === 'string' && options.includes('user') ? user : null
}

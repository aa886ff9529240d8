import { isObject, type JsonObject, member } from '@plat/core'
import { isSet } from '../dialects/checks.ts'
import { onlyMembers, readMessages } from './messages.ts'
import { type Format, type Option, type Prompt, type PromptNames, type Tool, UntranslatableError } from './prompt.ts'

/** Members of a chat completion that can be translated for every provider, and those that do not affect the response. */
const UNDERSTOOD = [
  'model',
  'messages',
  'stream',
  'stream_options',
  'max_tokens',
  'max_completion_tokens',
  'tools',
  'tool_choice',
] as const

const NAMES: PromptNames = {
  format: 'response_format',
  choice: 'tool_choice',
  effort: 'reasoning_effort',
  parallel: 'parallel_tool_calls',
}

/** Values, as JSON, that are equivalent to leaving the member out. */
const NEUTRAL: ReadonlyMap<string, readonly string[]> = new Map([
  ['n', ['1']],
  ['frequency_penalty', ['0']],
  ['presence_penalty', ['0']],
  ['logprobs', ['false']],
  ['top_logprobs', ['0']],
  ['store', ['false']],
  ['parallel_tool_calls', ['true']],
  ['service_tier', ['"auto"', '"default"']],
  ['logit_bias', ['{}']],
  ['metadata', ['{}']],
  ['modalities', ['["text"]']],
  ['response_format', ['{"type":"text"}']],
])

/**
 * Reads a chat completion for a provider that supports `options`. Throws `UntranslatableError` with the name of any other member, so
 * that nothing is silently left out.
 */
export function readChat(value: JsonObject, options: readonly Option[]): Prompt {
  const known: readonly string[] = [...UNDERSTOOD, ...options]
  const passed = Object.entries(value).filter(
    ([name, one]) => known.includes(name) || !NEUTRAL.get(name)?.includes(JSON.stringify(one)),
  )
  onlyMembers(Object.fromEntries(passed), known, '')
  const { tools, tool_choice: choice, max_tokens: most, max_completion_tokens: mostCompleted } = value
  return {
    ...readMessages(value.messages),
    tools: toolsOf(tools),
    choice: choiceOf(choice),
    parallel: value.parallel_tool_calls !== false,
    maxTokens: number(value, 'max_completion_tokens', mostCompleted) ?? number(value, 'max_tokens', most),
    temperature: number(value, 'temperature'),
    topP: number(value, 'top_p'),
    topK: number(value, 'top_k'),
    seed: number(value, 'seed'),
    frequencyPenalty: number(value, 'frequency_penalty'),
    presencePenalty: number(value, 'presence_penalty'),
    stop: stopOf(value.stop),
    format: formatOf(value.response_format),
    effort: text(value, 'reasoning_effort'),
    user: text(value, 'user'),
    stream: value.stream === true,
    names: NAMES,
  }
}

export function number(value: JsonObject, name: string, one: unknown = value[name]): number | null {
  if (!isSet(one)) return null
  if (typeof one !== 'number') throw new UntranslatableError(name, 'must be a number')
  return one
}

export function text(value: JsonObject, name: string): string | null {
  const one = value[name]
  if (!isSet(one)) return null
  if (typeof one !== 'string') throw new UntranslatableError(name, 'must be text')
  return one
}

export function stopOf(stop: unknown): readonly string[] {
  if (!isSet(stop)) return []
  const all: unknown[] = Array.isArray(stop) ? stop : [stop]
  return all.map((one) => {
    if (typeof one !== 'string') throw new UntranslatableError('stop', 'must be text or a list of texts')
    return one
  })
}

function toolsOf(tools: unknown): readonly Tool[] {
  if (!isSet(tools)) return []
  if (!Array.isArray(tools)) throw new UntranslatableError('tools', 'must be a list')
  return tools.map((tool: unknown, index) => toolOf(tool, `tools[${index}]`))
}

function toolOf(tool: unknown, at: string): Tool {
  if (!isObject(tool) || typeof tool.type !== 'string')
    throw new UntranslatableError(at, 'must be an object with a type')
  if (tool.type !== 'function')
    return { name: tool.type, description: null, schema: null, strict: false, hosted: tool, at }
  onlyMembers(tool, ['type', 'function'], at)
  const { function: own } = tool
  const here = `${at}.function`
  if (!isObject(own) || typeof own.name !== 'string') throw new UntranslatableError(`${here}.name`, 'is required')
  onlyMembers(own, ['name', 'description', 'parameters', 'strict'], here)
  const { name, description, parameters, strict } = own
  if (isSet(parameters) && !isObject(parameters))
    throw new UntranslatableError(`${here}.parameters`, 'must be a JSON Schema')
  return {
    name,
    description: typeof description === 'string' ? description : null,
    schema: isObject(parameters) ? parameters : null,
    strict: strict === true,
    hosted: null,
    at,
  }
}

function choiceOf(choice: unknown): Prompt['choice'] {
  if (!isSet(choice)) return 'auto'
  if (choice === 'auto' || choice === 'none' || choice === 'required') return choice
  const name = member(member(choice, 'function'), 'name')
  if (member(choice, 'type') !== 'function' || typeof name !== 'string')
    throw new UntranslatableError('tool_choice', 'must be auto, none, required or a function')
  return { name }
}

function formatOf(format: unknown): Format {
  const type = isSet(format) ? member(format, 'type') : 'text'
  if (type === 'text') return { kind: 'text' }
  if (type === 'json_object') return { kind: 'json' }
  const declared = member(format, 'json_schema')
  const schema = member(declared, 'schema')
  if (type !== 'json_schema' || !isObject(schema))
    throw new UntranslatableError('response_format', 'must be text, json_object or json_schema with a schema')
  const { name, description } = { name: member(declared, 'name'), description: member(declared, 'description') }
  const strict = member(declared, 'strict')
  return {
    kind: 'schema',
    name: typeof name === 'string' ? name : 'answer',
    description: typeof description === 'string' ? description : null,
    schema,
    strict: typeof strict === 'boolean' ? strict : null,
  }
}

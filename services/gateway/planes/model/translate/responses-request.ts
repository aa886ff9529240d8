import { isObject, type JsonObject, member } from '@plat/core'
import { isSet } from '../dialects/checks.ts'
import { number, text } from './chat.ts'
import { CalledTools, DATA_URL, onlyMembers, texts } from './messages.ts'
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

/** Members of a request of `responses` that can be translated for every provider. */
const UNDERSTOOD = [
  'model',
  'input',
  'instructions',
  'stream',
  'max_output_tokens',
  'tools',
  'tool_choice',
  'text',
  'reasoning',
]
/** Hints for caches, padding and statistics of the client, which have no effect on a response. */
const HINTS = [
  'prompt_cache_key',
  'prompt_cache_retention',
  'stream_options',
  'safety_identifier',
  'client_metadata',
] as const
/** Members with the same name in a chat completion. */
const SAME: readonly Option[] = ['temperature', 'top_p', 'parallel_tool_calls', 'user']
/** Values, as JSON, that are equivalent to leaving the member out. */
const NEUTRAL: ReadonlyMap<string, readonly string[]> = new Map([
  ['store', ['false']],
  ['background', ['false']],
  ['truncation', ['"disabled"']],
  ['service_tier', ['"auto"', '"default"']],
  ['parallel_tool_calls', ['true']],
  ['metadata', ['{}']],
  ['top_logprobs', ['0']],
  // A provider with another API has no such content, so that there is none to include.
  ['include', ['[]', '["reasoning.encrypted_content"]']],
])

const NAMES: PromptNames = {
  format: 'text.format',
  choice: 'tool_choice',
  effort: 'reasoning.effort',
  parallel: 'parallel_tool_calls',
}

/** Reads a request of OpenAI's `responses` for a provider that supports `options`. Throws `UntranslatableError`. */
export function readResponses(value: JsonObject, options: readonly Option[]): Prompt {
  const known = [...UNDERSTOOD, ...HINTS, ...SAME.filter((name) => options.includes(name))]
  const passed = Object.entries(value).filter(
    ([name, one]) => known.includes(name) || !NEUTRAL.get(name)?.includes(JSON.stringify(one)),
  )
  onlyMembers(Object.fromEntries(passed), known, '')
  const instructions = text(value, 'instructions')
  const { system, turns } = inputOf(value.input)
  return {
    system: instructions === null ? system : [instructions, ...system],
    turns,
    tools: toolsOf(value.tools),
    choice: choiceOf(value.tool_choice),
    parallel: value.parallel_tool_calls !== false,
    maxTokens: number(value, 'max_output_tokens'),
    temperature: number(value, 'temperature'),
    topP: number(value, 'top_p'),
    topK: null,
    seed: null,
    frequencyPenalty: null,
    presencePenalty: null,
    stop: [],
    format: formatOf(value.text, options),
    effort: effortOf(value.reasoning, options),
    user: text(value, 'user'),
    stream: value.stream === true,
    names: NAMES,
  }
}

function inputOf(input: unknown): Pick<Prompt, 'system' | 'turns'> {
  if (typeof input === 'string') return { system: [], turns: [{ side: 'user', parts: texts(input) }] }
  if (!Array.isArray(input)) throw new UntranslatableError('input', 'must be text or a list of items')
  const system: string[] = []
  const turns: { side: Turn['side']; parts: Part[] }[] = []
  const calls = new CalledTools()
  for (const [index, item] of input.entries()) {
    const at = `input[${index}]`
    if (!isObject(item)) throw new UntranslatableError(at, 'must be an item')
    const [side, parts] = itemOf(item, at, calls)
    if (side === 'system') for (const part of parts) system.push(textIn(part, `${at}.content`))
    else if (parts.length > 0) {
      const last = turns.at(-1)
      if (last?.side !== side) turns.push({ side, parts: [...parts] })
      else for (const part of parts) last.parts.push(part)
    }
  }
  return { system: system.filter((one) => one !== ''), turns }
}

function itemOf(item: JsonObject, at: string, calls: CalledTools): readonly [Turn['side'] | 'system', readonly Part[]] {
  switch (item.type ?? 'message') {
    case 'message':
      onlyMembers(item, ['type', 'id', 'status', 'role', 'content', 'phase'], at)
      return [sideOf(item.role, at), contentOf(item.content, `${at}.content`)]
    case 'function_call':
      return ['assistant', [callOf(item, at, calls)]]
    case 'function_call_output':
      return ['user', [resultOf(item, at, calls)]]
    // Thoughts of a model are encrypted by its provider, and no other can read them.
    case 'reasoning':
      return ['assistant', []]
    default:
      throw new UntranslatableError(`${at}.type`, 'is not a type of item that can be translated')
  }
}

function sideOf(role: unknown, at: string): Turn['side'] | 'system' {
  if (role === 'user' || role === 'assistant') return role
  if (role === 'system' || role === 'developer') return 'system'
  throw new UntranslatableError(`${at}.role`, 'must be system, developer, user or assistant')
}

function contentOf(content: unknown, at: string): readonly Part[] {
  if (typeof content === 'string') return texts(content)
  if (!Array.isArray(content)) throw new UntranslatableError(at, 'must be text or a list of parts')
  return content.flatMap((part: unknown, index) => partOf(part, `${at}[${index}]`))
}

function partOf(part: unknown, at: string): readonly Part[] {
  if (!isObject(part)) throw new UntranslatableError(at, 'must be a part with a type')
  switch (part.type) {
    case 'input_text':
    case 'output_text':
    case 'refusal': {
      const name = part.type === 'refusal' ? 'refusal' : 'text'
      onlyMembers(part, ['type', name, 'annotations', 'logprobs'], at)
      const own = part[name]
      if (typeof own !== 'string') throw new UntranslatableError(`${at}.${name}`, 'must be text')
      return texts(own)
    }
    case 'input_image': {
      onlyMembers(part, ['type', 'image_url', ...(part.detail === 'auto' ? ['detail'] : [])], at)
      return [linkOf(part.image_url, `${at}.image_url`)]
    }
    case 'input_file': {
      onlyMembers(part, ['type', 'file_data', 'filename'], at)
      const name = typeof part.filename === 'string' ? part.filename : ''
      return [dataOf(part.file_data, `${at}.file_data`, { of: 'document', name })]
    }
    default:
      throw new UntranslatableError(`${at}.type`, 'is not a type of part that can be translated')
  }
}

function linkOf(url: unknown, at: string): Part {
  if (typeof url !== 'string') throw new UntranslatableError(at, 'must be a URL')
  return url.startsWith('data:') ? dataOf(url, at, { of: 'image', name: '' }) : { kind: 'link', url, at }
}

function dataOf(url: unknown, at: string, { of, name }: { of: 'image' | 'document'; name: string }): Part {
  const [, type = '', data = ''] = typeof url === 'string' ? (DATA_URL.exec(url) ?? []) : []
  if (type === '' || (of === 'image' && !type.startsWith('image/')))
    throw new UntranslatableError(at, 'must be a data: URL with base64')
  return { kind: 'data', of, type, data, name, at }
}

function callOf(item: JsonObject, at: string, calls: CalledTools): Part {
  onlyMembers(item, ['type', 'id', 'status', 'call_id', 'name', 'arguments', 'extra_content'], at)
  const { call_id: id, name, arguments: json } = item
  if (typeof id !== 'string' || typeof name !== 'string' || typeof json !== 'string')
    throw new UntranslatableError(at, 'must be a call of a function with call_id, name and arguments')
  calls.add(id, name, at)
  const signature = member(member(item.extra_content, 'google'), 'thought_signature')
  const args = calls.argumentsOf(json, `${at}.arguments`)
  return { kind: 'call', id, name, args, signature: typeof signature === 'string' ? signature : null }
}

function resultOf(item: JsonObject, at: string, calls: CalledTools): Part {
  onlyMembers(item, ['type', 'id', 'status', 'call_id', 'output'], at)
  const { call_id: id, output } = item
  const name = typeof id === 'string' ? calls.get(id) : undefined
  if (typeof id !== 'string' || name === undefined)
    throw new UntranslatableError(`${at}.call_id`, 'names no function call of an item before')
  const parts = contentOf(output, `${at}.output`)
  const own = parts.map((part) => textIn(part, `${at}.output`)).join('')
  return { kind: 'result', id, name, text: own, failed: false }
}

function textIn(part: Part, at: string): string {
  if (part.kind !== 'text') throw new UntranslatableError(at, 'must be text')
  return part.text
}

function toolsOf(tools: unknown): readonly Tool[] {
  if (!isSet(tools)) return []
  if (!Array.isArray(tools)) throw new UntranslatableError('tools', 'must be a list')
  return tools.map((tool: unknown, index): Tool => {
    const at = `tools[${index}]`
    if (!isObject(tool) || typeof tool.type !== 'string')
      throw new UntranslatableError(at, 'must be an object with a type')
    if (tool.type === 'namespace')
      throw new UntranslatableError(at, 'is a namespace, which has no counterpart at the provider of this route')
    if (tool.type !== 'function')
      return { name: tool.type, description: null, schema: null, strict: false, hosted: tool, at }
    onlyMembers(tool, ['type', 'name', 'description', 'parameters', 'strict'], at)
    const { name, description, parameters, strict } = tool
    if (typeof name !== 'string') throw new UntranslatableError(`${at}.name`, 'is required')
    if (isSet(parameters) && !isObject(parameters))
      throw new UntranslatableError(`${at}.parameters`, 'must be a JSON Schema')
    const schema = isObject(parameters) ? parameters : null
    const own = typeof description === 'string' ? description : null
    return { name, description: own, schema, strict: strict === true, hosted: null, at }
  })
}

function choiceOf(choice: unknown): Prompt['choice'] {
  if (!isSet(choice)) return 'auto'
  if (choice === 'auto' || choice === 'none' || choice === 'required') return choice
  const name = member(choice, 'name')
  if (member(choice, 'type') !== 'function' || typeof name !== 'string')
    throw new UntranslatableError('tool_choice', 'must be auto, none, required or a function')
  return { name }
}

function formatOf(config: unknown, options: readonly Option[]): Format {
  if (!isObject(config)) return { kind: 'text' }
  const { verbosity, ...rest } = config
  if (isSet(verbosity) && verbosity !== 'medium')
    throw new UntranslatableError('text.verbosity', 'has no counterpart at the provider of this route')
  onlyMembers(rest, ['format'], 'text')
  const { format } = rest
  const type = isSet(format) ? member(format, 'type') : 'text'
  if (type === 'text') return { kind: 'text' }
  if (!options.includes('response_format'))
    throw new UntranslatableError(NAMES.format, 'has no counterpart at the provider of this route')
  if (type === 'json_object') return { kind: 'json' }
  const { schema, name, description, strict } = isObject(format) ? format : {}
  if (type !== 'json_schema' || !isObject(schema))
    throw new UntranslatableError(NAMES.format, 'must be text, json_object or json_schema with a schema')
  return {
    kind: 'schema',
    name: typeof name === 'string' ? name : 'answer',
    description: typeof description === 'string' ? description : null,
    schema,
    strict: typeof strict === 'boolean' ? strict : null,
  }
}

/** A summary of thoughts is what a provider says of them anyway. */
function effortOf(reasoning: unknown, options: readonly Option[]): string | null {
  if (!isObject(reasoning)) return null
  onlyMembers(reasoning, ['effort', 'summary', 'generate_summary'], 'reasoning')
  const { effort } = reasoning
  if (!isSet(effort)) return null
  if (typeof effort !== 'string' || !options.includes('reasoning_effort'))
    throw new UntranslatableError(NAMES.effort, 'has no counterpart at the provider of this route')
  return effort
}

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

const CONFIG = 'generationConfig'
const NAMES: PromptNames = {
  format: `${CONFIG}.responseMimeType`,
  choice: 'toolConfig.functionCallingConfig',
  effort: `${CONFIG}.thinkingConfig`,
  parallel: 'toolConfig',
}
/** Members of `generationConfig` by the settings that only some providers support. */
const SETTINGS: readonly (readonly [Option, string])[] = [
  ['temperature', 'temperature'],
  ['top_p', 'topP'],
  ['top_k', 'topK'],
  ['stop', 'stopSequences'],
  ['seed', 'seed'],
  ['frequency_penalty', 'frequencyPenalty'],
  ['presence_penalty', 'presencePenalty'],
  ['response_format', 'responseMimeType'],
  ['response_format', 'responseJsonSchema'],
  ['response_format', 'responseSchema'],
]

/** Reads a request of Google's `generateContent` for a provider that supports `options`. Throws `UntranslatableError`. */
export function readContents(value: JsonObject, options: readonly Option[], stream: boolean): Prompt {
  onlyMembers(value, ['contents', 'systemInstruction', 'tools', 'toolConfig', CONFIG], '')
  const config = isObject(value.generationConfig) ? value.generationConfig : {}
  const { candidateCount: count, responseModalities: modalities, thinkingConfig: thinking, ...rest } = config
  if (isSet(count) && count !== 1) throw new UntranslatableError(`${CONFIG}.candidateCount`, 'must be 1')
  if (Array.isArray(modalities) && modalities.some((one) => one !== 'TEXT'))
    throw new UntranslatableError(`${CONFIG}.responseModalities`, 'must be TEXT')
  const settings = SETTINGS.filter(([option]) => options.includes(option)).map(([, name]) => name)
  onlyMembers(rest, ['maxOutputTokens', ...settings], CONFIG)
  const calls = new PendingCalls()
  return {
    system: partsOf(value.systemInstruction, 'systemInstruction', calls).flatMap((part) =>
      part.kind === 'text' ? [part.text] : [],
    ),
    turns: turnsOf(value.contents, calls),
    tools: toolsOf(value.tools),
    choice: choiceOf(value.toolConfig),
    parallel: true,
    maxTokens: number(config, 'maxOutputTokens'),
    temperature: number(config, 'temperature'),
    topP: number(config, 'topP'),
    topK: number(config, 'topK'),
    seed: number(config, 'seed'),
    frequencyPenalty: number(config, 'frequencyPenalty'),
    presencePenalty: number(config, 'presencePenalty'),
    stop: stopOf(config.stopSequences),
    format: formatOf(config),
    // Google's CLI sends it with every request: providers without thoughts ignore it.
    effort: options.includes('reasoning_effort') ? effortOf(thinking) : null,
    user: null,
    stream,
    names: NAMES,
  }
}

/** Calls of tools have no ids here, or only some: results follow the calls of their name in order. */
class PendingCalls {
  readonly #tools = new CalledTools()
  readonly #waiting = new Map<string, string[]>()
  #count = 0

  /** Returns the id of a call. Throws `UntranslatableError` for too many. */
  call(id: unknown, name: string, at: string): string {
    const own = typeof id === 'string' && id !== '' ? id : `call_${this.#count++}`
    this.#tools.add(own, name, at)
    this.#waiting.getOrInsertComputed(name, () => []).push(own)
    return own
  }

  /** Returns the id of the call that this result belongs to. Throws `UntranslatableError` if there is none. */
  result(id: unknown, name: string, at: string): string {
    if (typeof id === 'string' && this.#tools.get(id) !== undefined) return id
    const waiting = this.#waiting.get(name)?.shift()
    if (waiting === undefined) throw new UntranslatableError(at, 'answers no function call of a content before')
    return waiting
  }
}

function turnsOf(contents: unknown, calls: PendingCalls): readonly Turn[] {
  if (!Array.isArray(contents)) throw new UntranslatableError('contents', 'must be a list')
  const turns: { side: Turn['side']; parts: Part[] }[] = []
  for (const [index, content] of contents.entries()) {
    const at = `contents[${index}]`
    const role = member(content, 'role') ?? 'user'
    if (role !== 'user' && role !== 'model' && role !== 'function')
      throw new UntranslatableError(`${at}.role`, 'must be user or model')
    const side = role === 'model' ? 'assistant' : 'user'
    const parts = partsOf(content, at, calls)
    if (parts.length === 0) continue
    const last = turns.at(-1)
    if (last?.side !== side) turns.push({ side, parts: [...parts] })
    else for (const part of parts) last.parts.push(part)
  }
  return turns
}

function partsOf(content: unknown, at: string, calls: PendingCalls): readonly Part[] {
  const parts = member(content, 'parts')
  if (!isSet(content) || !Array.isArray(parts)) return []
  return parts.flatMap((part: unknown, index) => partOf(part, `${at}.parts[${index}]`, calls))
}

function partOf(part: unknown, at: string, calls: PendingCalls): readonly Part[] {
  if (!isObject(part)) throw new UntranslatableError(at, 'must be a part')
  onlyMembers(part, ['text', 'thought', 'thoughtSignature', 'inlineData', 'functionCall', 'functionResponse'], at)
  const { text, inlineData: data, functionCall: call, functionResponse: response, thoughtSignature: signature } = part
  // Thoughts are signed by their provider, and no other can read them.
  if (part.thought === true) return []
  if (typeof text === 'string') return texts(text)
  if (isObject(data)) return [dataOf(data, `${at}.inlineData`)]
  if (isObject(call)) {
    const { name, args, id } = call
    if (typeof name !== 'string') throw new UntranslatableError(`${at}.functionCall.name`, 'is required')
    const own = calls.call(id, name, at)
    return [
      {
        kind: 'call',
        id: own,
        name,
        args: isObject(args) ? args : {},
        signature: typeof signature === 'string' ? signature : null,
      },
    ]
  }
  if (!isObject(response)) return []
  const { name, response: result, id } = response
  if (typeof name !== 'string') throw new UntranslatableError(`${at}.functionResponse.name`, 'is required')
  const failed = isSet(member(result, 'error'))
  return [{ kind: 'result', id: calls.result(id, name, at), name, text: JSON.stringify(result ?? {}), failed }]
}

function dataOf({ data, mimeType: type }: JsonObject, at: string): Part {
  if (typeof data !== 'string' || typeof type !== 'string')
    throw new UntranslatableError(at, 'must have data and mimeType')
  const of = type.startsWith('image/') ? 'image' : type.startsWith('audio/') ? 'audio' : 'document'
  return { kind: 'data', of, type, data, name: '', at }
}

function toolsOf(tools: unknown): readonly Tool[] {
  if (!Array.isArray(tools)) return []
  return tools.flatMap((tool: unknown, index) => {
    const at = `tools[${index}]`
    if (!isObject(tool)) throw new UntranslatableError(at, 'must be an object')
    const hosted = Object.keys(tool).find((name) => name !== 'functionDeclarations')
    if (hosted !== undefined)
      throw new UntranslatableError(`${at}.${hosted}`, 'has no counterpart at the provider of this route')
    const { functionDeclarations: all } = tool
    if (!Array.isArray(all)) throw new UntranslatableError(`${at}.functionDeclarations`, 'must be a list')
    return all.map((one: unknown, place) => declared(one, `${at}.functionDeclarations[${place}]`))
  })
}

/** Schemas of the result of a function, which no other API of models has. */
const OF_RESULTS = ['response', 'responseJsonSchema', 'response_json_schema'] as const

function declared(one: unknown, at: string): Tool {
  if (!isObject(one)) throw new UntranslatableError(at, 'must be an object')
  // Google's Python client writes the names of schemas in snake_case.
  const { parameters_json_schema: snake, ...rest } = one
  if (isSet(snake) && isSet(rest.parametersJsonSchema))
    throw new UntranslatableError(`${at}.parameters_json_schema`, 'is the same member as parametersJsonSchema')
  onlyMembers(rest, ['name', 'description', 'parameters', 'parametersJsonSchema', ...OF_RESULTS], at)
  const { name, description, parameters, parametersJsonSchema: schema = snake } = rest
  if (typeof name !== 'string') throw new UntranslatableError(`${at}.name`, 'is required')
  const own = isObject(schema) ? schema : isObject(parameters) ? jsonSchemaOf(parameters) : null
  return {
    name,
    description: typeof description === 'string' ? description : null,
    schema: own,
    strict: false,
    hosted: null,
    at,
  }
}

/** Google writes the types of its schemas in capitals; everything else is as in JSON Schema. */
function jsonSchemaOf(schema: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(schema).map(([name, one]) => {
      if (name === 'type' && typeof one === 'string') return [name, one.toLowerCase()]
      if (name === 'items' && isObject(one)) return [name, jsonSchemaOf(one)]
      if (name === 'properties' && isObject(one))
        return [
          name,
          Object.fromEntries(Object.entries(one).map(([key, own]) => [key, isObject(own) ? jsonSchemaOf(own) : own])),
        ]
      if (name === 'anyOf' && Array.isArray(one))
        return [name, one.map((own: unknown) => (isObject(own) ? jsonSchemaOf(own) : own))]
      return [name, one]
    }),
  )
}

function choiceOf(config: unknown): Prompt['choice'] {
  if (isObject(config)) onlyMembers(config, ['functionCallingConfig'], 'toolConfig')
  const calling = member(config, 'functionCallingConfig')
  if (!isObject(calling)) return 'auto'
  const { mode, allowedFunctionNames: names } = calling
  const allowed: readonly unknown[] = Array.isArray(names) ? names : []
  const [only] = allowed
  if (mode === 'NONE') return 'none'
  if (mode === 'ANY' && allowed.length === 0) return 'required'
  if (mode === 'ANY' && allowed.length === 1 && typeof only === 'string') return { name: only }
  if ((!isSet(mode) || mode === 'AUTO' || mode === 'MODE_UNSPECIFIED') && allowed.length === 0) return 'auto'
  throw new UntranslatableError(NAMES.choice, 'must be AUTO, NONE, ANY, or ANY with one function')
}

function formatOf({ responseMimeType: type, responseJsonSchema: own, responseSchema: schema }: JsonObject): Format {
  if (!isSet(type) || type === 'text/plain') return { kind: 'text' }
  if (type !== 'application/json') throw new UntranslatableError(NAMES.format, 'must be text/plain or application/json')
  const found = isObject(own) ? own : isObject(schema) ? jsonSchemaOf(schema) : null
  return found === null
    ? { kind: 'json' }
    : { kind: 'schema', name: 'answer', description: null, schema: found, strict: null }
}

/** Most tokens of thought for each word of `reasoning_effort`; more are `high`. */
const EFFORTS: readonly (readonly [tokens: number, word: string])[] = [
  [0, 'none'],
  [2048, 'low'],
  [12_288, 'medium'],
]

/** -1 leaves the effort to the model. */
function effortOf(thinking: unknown): string | null {
  const { thinkingBudget: budget, thinkingLevel: level } = isObject(thinking) ? thinking : {}
  if (typeof level === 'string') return level.toLowerCase()
  if (typeof budget !== 'number' || budget < 0) return null
  return EFFORTS.find(([most]) => budget <= most)?.[1] ?? 'high'
}

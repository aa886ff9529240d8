import { isObject, type JsonObject, member } from '@plat/core'
import type { Usage } from '../../../call/index.ts'
import { NestedJson } from '../../wire/nested.ts'
import { isSet } from '../dialects/checks.ts'
import { InvalidResponseError } from '../invalid.ts'
import {
  type Format,
  type Option,
  type Part,
  type Prompt,
  type ReadPrompt,
  type Tool,
  UntranslatableError,
} from './prompt.ts'
import { countOf, type FinishReason, finishOf, type ResponsePart } from './response-parts.ts'
import { ArgumentTexts, type ProviderObject } from './streams.ts'

const OPTIONS: readonly Option[] = [
  'temperature',
  'top_p',
  'top_k',
  'stop',
  'seed',
  'frequency_penalty',
  'presence_penalty',
  'reasoning_effort',
  'response_format',
]

/** A chat as `generateContent` of Gemini and Vertex AI reads it. Throws `UntranslatableError`. */
export function geminiRequest(read: ReadPrompt): JsonObject {
  const prompt = read(OPTIONS)
  if (!prompt.parallel)
    throw new UntranslatableError(prompt.names.parallel, 'cannot limit tool calls to one: Gemini decides itself')
  const config = configOf(prompt)
  const nested = new NestedJson()
  return {
    contents: prompt.turns.map(({ side, parts }) => ({
      role: side === 'user' ? 'user' : 'model',
      parts: parts.map((part) => partOf(part, nested)),
    })),
    ...(prompt.system.length > 0 && { systemInstruction: { parts: prompt.system.map((text) => ({ text })) } }),
    ...toolsOf(prompt),
    ...(Object.keys(config).length > 0 && { generationConfig: config }),
  }
}

/** Tokens of thought that the words of `reasoning_effort` stand for, as Google's own endpoint for OpenAI's API has them. */
const THOUGHTS: Readonly<Record<string, number>> = { none: 0, minimal: 1024, low: 1024, medium: 8192, high: 24_576 }

function configOf(prompt: Prompt): JsonObject {
  const { maxTokens, temperature, topP, topK, seed, stop, frequencyPenalty, presencePenalty, effort } = prompt
  return {
    ...(maxTokens !== null && { maxOutputTokens: maxTokens }),
    ...(temperature !== null && { temperature }),
    ...(topP !== null && { topP }),
    ...(topK !== null && { topK }),
    ...(seed !== null && { seed }),
    ...(stop.length > 0 && { stopSequences: stop }),
    ...(frequencyPenalty !== null && { frequencyPenalty }),
    ...(presencePenalty !== null && { presencePenalty }),
    ...(effort !== null && { thinkingConfig: { thinkingBudget: budgetOf(effort, prompt.names.effort) } }),
    ...formatOf(prompt.format),
  }
}

function budgetOf(effort: string, name: string): number {
  const budget = Object.hasOwn(THOUGHTS, effort) ? THOUGHTS[effort] : undefined
  if (budget === undefined) throw new UntranslatableError(name, `must be one of ${Object.keys(THOUGHTS).join(', ')}`)
  return budget
}

function formatOf(format: Format): JsonObject {
  if (format.kind === 'text') return {}
  const schema = format.kind === 'schema' && { responseJsonSchema: format.schema }
  return { responseMimeType: 'application/json', ...schema }
}

function partOf(part: Part, nested: NestedJson): JsonObject {
  switch (part.kind) {
    case 'text':
      return { text: part.text }
    case 'call': {
      const { name, args, signature } = part
      // Vertex AI takes no id of a call: calls and results are matched by name and order.
      return { functionCall: { name, args }, ...(signature !== null && { thoughtSignature: signature }) }
    }
    case 'result': {
      const { name, text, failed } = part
      return { functionResponse: { name, response: failed ? { error: text } : responseOf(text, nested) } }
    }
    case 'link':
      throw new UntranslatableError(part.at, 'must hold the image itself (data:), since the gateway fetches none')
    case 'data':
      return { inlineData: { mimeType: part.type, data: part.data } }
  }
}

/** A result has to be an object. */
function responseOf(text: string, nested: NestedJson): JsonObject {
  const value = nested.parse(text)
  // Only what is written back as it came: a number of twenty digits stays text.
  return isObject(value) && JSON.stringify(value) === text ? value : { result: text }
}

/** Tools that run at Google, by their words in `providerTools`. */
const HOSTED: Readonly<Record<string, string>> = { google_search: 'googleSearch', url_context: 'urlContext' }

function toolsOf({ tools, choice }: Prompt): JsonObject {
  if (tools.length === 0) return {}
  const own = tools.filter(({ hosted }) => hosted === null)
  const hosted = tools.filter((tool) => tool.hosted !== null).map(hostedOf)
  const declared = own.length === 0 ? [] : [{ functionDeclarations: own.map(declarationOf) }]
  const entry = { tools: [...declared, ...hosted] }
  if (own.length === 0) return entry
  const isStrict = own.some(({ strict }) => strict)
  const functionCallingConfig = { mode: modeOf(choice, isStrict), ...onlyOf(choice) }
  return { ...entry, toolConfig: { functionCallingConfig } }
}

/** Generated arguments are validated against their schema only in the modes `ANY` and `VALIDATED`. */
function modeOf(choice: Prompt['choice'], isStrict: boolean): string {
  if (choice === 'none') return 'NONE'
  return choice === 'auto' ? (isStrict ? 'VALIDATED' : 'AUTO') : 'ANY'
}

function onlyOf(choice: Prompt['choice']): JsonObject {
  return typeof choice === 'string' ? {} : { allowedFunctionNames: [choice.name] }
}

function declarationOf({ name, description, schema }: Tool): JsonObject {
  return {
    name,
    ...(description !== null && { description }),
    ...(schema !== null && { parametersJsonSchema: schema }),
  }
}

function hostedOf({ name, at }: Tool): JsonObject {
  const word = Object.hasOwn(HOSTED, name) ? HOSTED[name] : undefined
  if (word === undefined)
    throw new UntranslatableError(`${at}.type`, `must be function or one of ${Object.keys(HOSTED).join(', ')}`)
  return { [word]: {} }
}

const FILTERED = [
  'SAFETY',
  'RECITATION',
  'LANGUAGE',
  'BLOCKLIST',
  'PROHIBITED_CONTENT',
  'SPII',
  'IMAGE_SAFETY',
  'MODEL_ARMOR',
] as const
const ENDS: Readonly<Record<string, FinishReason>> = {
  STOP: 'stop',
  MAX_TOKENS: 'length',
  ...Object.fromEntries(FILTERED.map((name) => [name, 'content_filter'] as const)),
}

/** Reads a response of Gemini, or the parts of a stream, which have the same format. */
export class GeminiReader {
  readonly #id: string
  #calls = 0

  /** `id` of the response. Gemini's tool calls have no ids, and clients distinguish them by name. */
  constructor(id: string) {
    this.#id = id
  }

  /** Throws `InvalidResponseError`. */
  partsOf(response: ProviderObject): readonly ResponsePart[] {
    const { value } = response
    if (isObject(value.error)) throw new InvalidResponseError('Gemini reports an error')
    const [candidate]: readonly unknown[] = Array.isArray(value.candidates) ? value.candidates : []
    const parts = member(member(candidate, 'content'), 'parts')
    const texts = new ArgumentTexts(response, ['candidates', 0, 'content', 'parts'], ['functionCall', 'args'])
    const parsed = Array.isArray(parts)
      ? parts.flatMap((part: unknown, index) => this.#part(part, () => texts.textOf(index)))
      : []
    return [...parsed, ...this.#finish(candidate, value.promptFeedback), ...usageOf(value.usageMetadata)]
  }

  #part(part: unknown, argumentsOf: () => string): readonly ResponsePart[] {
    const text = member(part, 'text')
    if (typeof text === 'string')
      return text === '' ? [] : [{ kind: member(part, 'thought') === true ? 'reasoning' : 'text', text }]
    const call = member(part, 'functionCall')
    const name = member(call, 'name')
    if (typeof name !== 'string') return []
    const { id, signature } = { id: member(call, 'id'), signature: member(part, 'thoughtSignature') }
    const own = `call_${this.#id}_${this.#calls++}`
    return [
      {
        kind: 'call',
        id: typeof id === 'string' && id !== '' ? id : own,
        name,
        signature: typeof signature === 'string' ? signature : null,
      },
      { kind: 'arguments', text: argumentsOf() },
    ]
  }

  #finish(candidate: unknown, feedback: unknown): readonly ResponsePart[] {
    if (isSet(member(feedback, 'blockReason'))) return [{ kind: 'finish', reason: 'content_filter' }]
    const reason = member(candidate, 'finishReason')
    if (!isSet(reason) || reason === '') return []
    const end = finishOf(ENDS, reason, 'Gemini')
    return [end.reason === 'stop' && this.#calls > 0 ? { ...end, reason: 'tool_calls' } : end]
  }
}

/** The prompt includes tokens read from a cache; the candidates do not include thoughts. */
function usageOf(usage: unknown): readonly ResponsePart[] {
  if (!isObject(usage)) return []
  const reasoning = countOf(usage.thoughtsTokenCount)
  const counted: Usage = {
    prompt: countOf(usage.promptTokenCount) + countOf(usage.toolUsePromptTokenCount),
    completion: countOf(usage.candidatesTokenCount) + reasoning,
    cachedRead: countOf(usage.cachedContentTokenCount),
    cachedWrite: 0,
    reasoning,
  }
  return [{ kind: 'usage', usage: counted }]
}

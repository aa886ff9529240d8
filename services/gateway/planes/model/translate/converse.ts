import { isObject, type JsonObject, member } from '@plat/core'
import type { Usage } from '../../../call/index.ts'
import { InvalidResponseError } from '../invalid.ts'
import { type Option, type Part, type Prompt, type ReadPrompt, type Tool, UntranslatableError } from './prompt.ts'
import { countOf, type FinishReason, finishOf, type ResponsePart, toolCallPart } from './response-parts.ts'
import { ArgumentTexts, type ProviderObject } from './streams.ts'

const OPTIONS: readonly Option[] = ['temperature', 'top_p', 'stop', 'response_format']

/** A chat as `Converse` of Amazon Bedrock reads it. Throws `UntranslatableError`. */
export function converseRequest(read: ReadPrompt): JsonObject {
  const prompt = read(OPTIONS)
  const { maxTokens, temperature, topP, stop } = prompt
  const limits = {
    ...(maxTokens !== null && { maxTokens }),
    ...(temperature !== null && { temperature }),
    ...(topP !== null && { topP }),
    ...(stop.length > 0 && { stopSequences: stop }),
  }
  const documents = { count: 0 }
  return {
    messages: prompt.turns.map(({ side, parts }) => ({
      role: side,
      content: parts.map((part) => blockOf(part, documents)),
    })),
    ...(prompt.system.length > 0 && { system: prompt.system.map((text) => ({ text })) }),
    ...(Object.keys(limits).length > 0 && { inferenceConfig: limits }),
    ...toolsOf(prompt),
    ...outputOf(prompt),
  }
}

/** Formats of images and documents that Converse knows, by media type. */
const IMAGES: Readonly<Record<string, string>> = {
  'image/png': 'png',
  'image/jpeg': 'jpeg',
  'image/gif': 'gif',
  'image/webp': 'webp',
}
const DOCUMENTS: Readonly<Record<string, string>> = {
  'application/pdf': 'pdf',
  'text/csv': 'csv',
  'text/html': 'html',
  'text/markdown': 'md',
  'text/plain': 'txt',
}

/** `documents` is the number of documents so far, since each needs a unique name. */
function blockOf(part: Part, documents: { count: number }): JsonObject {
  switch (part.kind) {
    case 'text':
      return { text: part.text }
    case 'call':
      return { toolUse: { toolUseId: part.id, name: part.name, input: part.args } }
    case 'result':
      return {
        toolResult: { toolUseId: part.id, content: [{ text: part.text }], ...(part.failed && { status: 'error' }) },
      }
    case 'link':
      throw new UntranslatableError(part.at, 'must hold the image itself (data:), since Bedrock fetches none')
    case 'data': {
      const isImage = part.of === 'image'
      const format = (isImage ? IMAGES : DOCUMENTS)[part.type]
      if (format === undefined || part.of === 'audio')
        throw new UntranslatableError(part.at, `has ${part.type}, which Converse does not accept`)
      const source = { bytes: part.data }
      return isImage
        ? { image: { format, source } }
        : { document: { format, name: nameOf(part.name, documents), source } }
    }
  }
}

/** Names of documents are instructions to some models; Bedrock admits these characters only, and no name twice. */
function nameOf(name: string, documents: { count: number }): string {
  documents.count++
  return `${documents.count} ${name.replace(/[^A-Za-z0-9()[\]-]+/g, ' ').trim()}`.trim().slice(0, 200)
}

function toolsOf({ tools, choice, turns, names }: Prompt): JsonObject {
  const isUsed = turns.some(({ parts }) => parts.some(({ kind }) => kind === 'call' || kind === 'result'))
  if (choice === 'none') {
    if (isUsed) throw new UntranslatableError(names.choice, 'cannot be none when messages contain tool calls')
    return {}
  }
  if (tools.length === 0) return {}
  const toolChoice =
    choice === 'auto' ? { auto: {} } : choice === 'required' ? { any: {} } : { tool: { name: choice.name } }
  return { toolConfig: { tools: tools.map(specOf), toolChoice } }
}

function specOf({ name, description, schema, strict, hosted, at }: Tool): JsonObject {
  if (hosted !== null) {
    if (hosted.type !== 'system_tool' || typeof hosted.name !== 'string')
      throw new UntranslatableError(`${at}.type`, 'must be function, or system_tool with its name')
    return { systemTool: { name: hosted.name } }
  }
  return {
    toolSpec: {
      name,
      ...(description !== null && description !== '' && { description }),
      inputSchema: { json: schema ?? { type: 'object', properties: {} } },
      ...(strict && { strict }),
    },
  }
}

function outputOf({ format, names }: Prompt): JsonObject {
  if (format.kind === 'text') return {}
  if (format.kind === 'json')
    throw new UntranslatableError(names.format, 'must be json_schema: Converse wants to know which JSON')
  const { name, description, schema } = format
  // Converse wants the schema as a text.
  const jsonSchema = { name, schema: JSON.stringify(schema), ...(description !== null && { description }) }
  return { outputConfig: { textFormat: { type: 'json_schema', structure: { jsonSchema } } } }
}

const ENDS: Readonly<Record<string, FinishReason>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  tool_use: 'tool_calls',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  guardrail_intervened: 'content_filter',
  content_filtered: 'content_filter',
}

/** A whole response of Converse. Throws `InvalidResponseError`. */
export function converseAnswer(response: ProviderObject): readonly ResponsePart[] {
  const { value } = response
  const content = member(member(member(value, 'output'), 'message'), 'content')
  if (!Array.isArray(content)) throw new InvalidResponseError('a response of Converse without content')
  const texts = new ArgumentTexts(response, ['output', 'message', 'content'], ['toolUse', 'input'])
  const parts = content.flatMap((block: unknown, index) => blockParts(block, () => texts.textOf(index)))
  return [...parts, finishOf(ENDS, value.stopReason, 'Converse'), ...usageOf(value.usage)]
}

function blockParts(block: unknown, argumentsOf: () => string): readonly ResponsePart[] {
  const text = member(block, 'text')
  if (typeof text === 'string') return [{ kind: 'text', text }]
  const cited = member(member(block, 'citationsContent'), 'content')
  if (Array.isArray(cited)) return cited.flatMap(citedParts)
  const reasoning = member(member(member(block, 'reasoningContent'), 'reasoningText'), 'text')
  if (typeof reasoning === 'string') return [{ kind: 'reasoning', text: reasoning }]
  const use = member(block, 'toolUse')
  return isOwnTool(use) ? [callOf(use), { kind: 'arguments', text: argumentsOf() }] : []
}

/** A text with citations has texts only. */
function citedParts(block: unknown): readonly ResponsePart[] {
  const text = member(block, 'text')
  return typeof text === 'string' ? [{ kind: 'text', text }] : []
}

/** Returns true for calls of the client's tools. Calls of tools that run at the provider are not translated. */
function isOwnTool(use: unknown): use is JsonObject {
  return isObject(use) && use.type !== 'server_tool_use'
}

function callOf({ toolUseId, name }: JsonObject): ResponsePart {
  return toolCallPart(toolUseId, name, 'Converse')
}

/** Reads the events of ConverseStream. */
export class ConverseReader {
  #isOwnTool = false

  /** `name` of the event. Throws `InvalidResponseError`. */
  partsOf(name: string, value: JsonObject): readonly ResponsePart[] {
    switch (name) {
      case 'contentBlockStart': {
        const use = member(value.start, 'toolUse')
        this.#isOwnTool = isOwnTool(use)
        return isOwnTool(use) ? [callOf(use)] : []
      }
      case 'contentBlockDelta':
        return this.#delta(value.delta)
      case 'messageStop':
        return [finishOf(ENDS, value.stopReason, 'Converse')]
      case 'metadata':
        return usageOf(value.usage)
      default:
        return []
    }
  }

  #delta(delta: unknown): readonly ResponsePart[] {
    const text = member(delta, 'text')
    if (typeof text === 'string') return [{ kind: 'text', text }]
    const input = member(member(delta, 'toolUse'), 'input')
    if (typeof input === 'string') return this.#isOwnTool ? [{ kind: 'arguments', text: input }] : []
    const reasoning = member(member(delta, 'reasoningContent'), 'text')
    return typeof reasoning === 'string' ? [{ kind: 'reasoning', text: reasoning }] : []
  }
}

/** `inputTokens` does not include tokens read from or written to a cache. */
function usageOf(usage: unknown): readonly ResponsePart[] {
  if (!isObject(usage)) return []
  const cachedRead = countOf(usage.cacheReadInputTokens)
  const cachedWrite = countOf(usage.cacheWriteInputTokens)
  const counted: Usage = {
    prompt: countOf(usage.inputTokens) + cachedRead + cachedWrite,
    completion: countOf(usage.outputTokens),
    cachedRead,
    cachedWrite,
    reasoning: 0,
  }
  return [{ kind: 'usage', usage: counted }]
}

import { isObject, type JsonObject, MESSAGE_LIMITS, member, parseStrict } from '@plat/core'
import { isSet, isTokens } from '../dialects/checks.ts'
import { InvalidResponseError } from '../invalid.ts'
import { onlyMembers } from './messages.ts'
import { UntranslatableError } from './prompt.ts'

/** Translation of `embeddings` for the models of one provider. */
export interface EmbeddingProvider {
  /** Throws `UntranslatableError`. */
  request(input: EmbeddingInput, model: string): JsonObject
  /** Returns the vectors in the order of the texts, and the tokens of all texts (null: not reported). Throws `InvalidResponseError`. */
  answer(value: JsonObject): { readonly vectors: readonly unknown[]; readonly tokens: number | null }
}

/** A request for embeddings. */
export interface EmbeddingInput {
  readonly texts: readonly string[]
  /** Length of each vector; null: the model's own. */
  readonly dimensions: number | null
  /** Use of the vectors, which only some models have; null: the caller stated none. */
  readonly inputType: string | null
  /** The use is one of Google's task types, else one of Cohere's words. */
  readonly isTaskType: boolean
  /** Titles of the texts; null: none has one. */
  readonly titles: readonly (string | null)[] | null
  /** Names of members in the API of the caller, for refusals. */
  readonly names: Readonly<Record<'input' | 'inputType', string>>
}

/** An API of callers for embeddings. */
export interface EmbeddingCaller {
  /** Throws `UntranslatableError`. */
  read(value: JsonObject): EmbeddingInput
  /** Throws `InvalidResponseError`. */
  write(
    answer: ReturnType<EmbeddingProvider['answer']>,
    request: { readonly model: string; readonly request: JsonObject },
  ): JsonObject
}

const MEMBERS = ['model', 'input', 'dimensions', 'encoding_format', 'user', 'input_type']

const OPENAI_NAMES = { input: 'input', inputType: 'input_type' } as const

/** Reads a request of OpenAI's `embeddings`. Throws `UntranslatableError`. */
function readEmbeddings(value: JsonObject): EmbeddingInput {
  onlyMembers(value, MEMBERS, '')
  const { input, dimensions, encoding_format: encoding, input_type: type } = value
  const texts = typeof input === 'string' ? [input] : input
  if (!Array.isArray(texts) || texts.length === 0 || !texts.every((text) => typeof text === 'string'))
    throw new UntranslatableError('input', 'must be text or a list of texts: other providers have other tokens')
  if (isSet(encoding) && encoding !== 'float' && encoding !== 'base64')
    throw new UntranslatableError('encoding_format', 'must be float or base64')
  if (isSet(dimensions) && !isTokens(dimensions)) throw new UntranslatableError('dimensions', 'must be a whole number')
  return {
    texts,
    dimensions: isTokens(dimensions) ? dimensions : null,
    inputType: typeof type === 'string' ? type : null,
    isTaskType: false,
    titles: null,
    names: OPENAI_NAMES,
  }
}

/** `embeddings` of OpenAI's API, with vectors as `encoding_format` of the request states. */
export const openaiCaller: EmbeddingCaller = {
  read: readEmbeddings,
  write({ vectors, tokens }, { model, request }) {
    const isBase64 = request.encoding_format === 'base64'
    const data = numbersOf(vectors).map((vector, index) => ({
      object: 'embedding',
      index,
      embedding: isBase64 ? base64Of(vector) : vector,
    }))
    return {
      object: 'list',
      model,
      data,
      ...(tokens !== null && { usage: { prompt_tokens: tokens, total_tokens: tokens } }),
    }
  },
}

/** Returns vectors of numbers. Throws `InvalidResponseError`. */
export function numbersOf(vectors: readonly unknown[]): readonly (readonly number[])[] {
  return vectors.map((vector) => {
    if (!Array.isArray(vector) || !vector.every((one) => typeof one === 'number'))
      throw new InvalidResponseError('a vector that is not a list of numbers')
    return vector
  })
}

/** The numbers of a vector as 32-bit floats, little endian. */
function base64Of(vector: readonly number[]): string {
  const bytes = Buffer.alloc(vector.length * Float32Array.BYTES_PER_ELEMENT)
  for (const [index, one] of vector.entries()) bytes.writeFloatLE(one, index * Float32Array.BYTES_PER_ELEMENT)
  return bytes.toString('base64')
}

/** The object in a response. Vectors are numbers that are rounded anyway, so their literals are not kept. Throws `InvalidResponseError`. */
export function vectorsIn(json: Uint8Array): JsonObject {
  try {
    const value = parseStrict(json, MESSAGE_LIMITS)
    if (isObject(value)) return value
  } catch {
    throw new InvalidResponseError('what the provider sent is not JSON')
  }
  throw new InvalidResponseError('what the provider sent is not a JSON object')
}

function listIn(value: JsonObject, name: string): readonly unknown[] {
  const list = value[name]
  if (!Array.isArray(list)) throw new InvalidResponseError(`a response without ${name}`)
  return list
}

/** `batchEmbedContents` of Gemini. */
export const geminiEmbeddings: EmbeddingProvider = {
  request: ({ texts, dimensions, inputType, titles }, model) => ({
    requests: texts.map((text, index) => ({
      model: `models/${model}`,
      content: { parts: [{ text }] },
      ...titleOf(titles, index),
      ...(dimensions !== null && { outputDimensionality: dimensions }),
      ...(inputType !== null && { taskType: inputType }),
    })),
  }),
  answer: (value) => ({ vectors: listIn(value, 'embeddings').map((one) => member(one, 'values')), tokens: null }),
}

function titleOf(titles: EmbeddingInput['titles'], index: number): { readonly title?: string } {
  const title = titles?.[index] ?? null
  return title === null ? {} : { title }
}

/** `embeddings` of OpenAI's API. */
export const openaiEmbeddings: EmbeddingProvider = {
  request(input, model) {
    const { texts, dimensions, inputType, names } = input
    if (inputType !== null) throw new UntranslatableError(names.inputType, 'has no counterpart in the API of OpenAI')
    refuseTitles(input)
    return { model, input: texts, encoding_format: 'float', ...(dimensions !== null && { dimensions }) }
  },
  answer(value) {
    const all = listIn(value, 'data')
    const vectors = new Array<unknown>(all.length).fill(null)
    for (const one of all) {
      const index = member(one, 'index')
      if (!isTokens(index) || index >= all.length) throw new InvalidResponseError('a vector without its place')
      vectors[index] = member(one, 'embedding')
    }
    const tokens = member(value.usage, 'prompt_tokens')
    return { vectors, tokens: isTokens(tokens) ? tokens : null }
  },
}

/** Throws `UntranslatableError` if a text has a title. */
function refuseTitles({ titles }: EmbeddingInput): void {
  if (titles !== null) throw new UntranslatableError('title', 'has no counterpart at this provider')
}

/** `predict` of Vertex AI. */
export const vertexEmbeddings: EmbeddingProvider = {
  request: ({ texts, dimensions, inputType, titles }) => ({
    instances: texts.map((content, index) => ({
      content,
      ...titleOf(titles, index),
      ...(inputType !== null && { task_type: inputType }),
    })),
    ...(dimensions !== null && { parameters: { outputDimensionality: dimensions } }),
  }),
  answer(value) {
    const all = listIn(value, 'predictions').map((one) => member(one, 'embeddings'))
    const counts = all.map((one) => member(member(one, 'statistics'), 'token_count'))
    const tokens = counts.every(isTokens) ? counts.reduce((sum, one) => sum + one, 0) : null
    return { vectors: all.map((one) => member(one, 'values')), tokens }
  },
}

const TITAN = /(?:^|\.)amazon\.titan-embed-/
const COHERE = /(?:^|\.)cohere\.embed-/

/** Cohere's words for Google's task types. */
const COHERE_TYPES: Readonly<Record<string, string>> = {
  RETRIEVAL_DOCUMENT: 'search_document',
  RETRIEVAL_QUERY: 'search_query',
  CLASSIFICATION: 'classification',
  CLUSTERING: 'clustering',
}

/** The use of vectors, which Cohere requires. Throws `UntranslatableError`. */
function cohereType({ inputType, isTaskType, names }: EmbeddingInput): string {
  const words = isTaskType ? Object.keys(COHERE_TYPES) : Object.values(COHERE_TYPES)
  if (inputType === null) throw new UntranslatableError(names.inputType, `is required by Cohere: ${words.join(', ')}`)
  if (!isTaskType) return inputType
  const type = COHERE_TYPES[inputType]
  if (type === undefined)
    throw new UntranslatableError(names.inputType, `must be one of ${words.join(', ')} for Cohere`)
  return type
}

/** `InvokeModel` of Bedrock, whose models have their own formats. */
export const bedrockEmbeddings: EmbeddingProvider = {
  request(input, model) {
    const { texts, dimensions, inputType, names } = input
    refuseTitles(input)
    if (TITAN.test(model)) {
      const [inputText] = texts
      if (texts.length !== 1) throw new UntranslatableError(names.input, 'must be one text for models of Titan')
      if (inputType !== null) throw new UntranslatableError(names.inputType, 'has no counterpart at models of Titan')
      return { inputText, ...(dimensions !== null && { dimensions }) }
    }
    if (!COHERE.test(model))
      throw new UntranslatableError('model', 'must be an embedding model of Titan or Cohere at Bedrock')
    return {
      texts,
      input_type: cohereType(input),
      ...(dimensions !== null && { output_dimension: dimensions }),
    }
  },
  answer(value) {
    const tokens = isTokens(value.inputTextTokenCount) ? value.inputTextTokenCount : null
    if (Array.isArray(value.embedding)) return { vectors: [value.embedding], tokens }
    const all = isObject(value.embeddings) ? { embeddings: value.embeddings.float } : value
    return { vectors: listIn(all, 'embeddings'), tokens }
  },
}

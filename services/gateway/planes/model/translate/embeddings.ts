import { isObject, type JsonObject, MESSAGE_LIMITS, parseStrict } from '@plat/core'
import { member } from '../../wire/json.ts'
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
  /** `input_type`, which only some models have; null: the caller stated none. */
  readonly inputType: string | null
}

const MEMBERS = ['model', 'input', 'dimensions', 'encoding_format', 'user', 'input_type']

/** Reads a request of OpenAI's `embeddings`. Throws `UntranslatableError`. */
export function readEmbeddings(value: JsonObject): EmbeddingInput {
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
  }
}

/** Returns a response of OpenAI's `embeddings`, with vectors as `encoding_format` of the request states. Throws `InvalidResponseError`. */
export function embeddingsOf(
  { vectors, tokens }: ReturnType<EmbeddingProvider['answer']>,
  { model, request, count }: { readonly model: string; readonly request: JsonObject; readonly count: number },
): JsonObject {
  if (vectors.length !== count) throw new InvalidResponseError('another number of vectors than texts')
  const isBase64 = request.encoding_format === 'base64'
  const data = vectors.map((vector, index) => {
    if (!Array.isArray(vector) || !vector.every((one) => typeof one === 'number'))
      throw new InvalidResponseError('a vector that is no list of numbers')
    return { object: 'embedding', index, embedding: isBase64 ? base64Of(vector) : vector }
  })
  return {
    object: 'list',
    model,
    data,
    ...(tokens !== null && { usage: { prompt_tokens: tokens, total_tokens: tokens } }),
  }
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
  if (!Array.isArray(list)) throw new InvalidResponseError(`an answer without ${name}`)
  return list
}

/** `batchEmbedContents` of Gemini. */
export const geminiEmbeddings: EmbeddingProvider = {
  request: ({ texts, dimensions, inputType }, model) => ({
    requests: texts.map((text) => ({
      model: `models/${model}`,
      content: { parts: [{ text }] },
      ...(dimensions !== null && { outputDimensionality: dimensions }),
      ...(inputType !== null && { taskType: inputType }),
    })),
  }),
  answer: (value) => ({ vectors: listIn(value, 'embeddings').map((one) => member(one, 'values')), tokens: null }),
}

/** `predict` of Vertex AI. */
export const vertexEmbeddings: EmbeddingProvider = {
  request: ({ texts, dimensions, inputType }) => ({
    instances: texts.map((content) => ({ content, ...(inputType !== null && { task_type: inputType }) })),
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

/** `InvokeModel` of Bedrock, whose models have their own formats. */
export const bedrockEmbeddings: EmbeddingProvider = {
  request({ texts, dimensions, inputType }, model) {
    if (TITAN.test(model)) {
      const [inputText] = texts
      if (texts.length !== 1) throw new UntranslatableError('input', 'must be one text for models of Titan')
      if (inputType !== null) throw new UntranslatableError('input_type', 'has no counterpart at models of Titan')
      return { inputText, ...(dimensions !== null && { dimensions }) }
    }
    if (!COHERE.test(model))
      throw new UntranslatableError('model', 'must be an embedding model of Titan or Cohere at Bedrock')
    if (inputType === null)
      throw new UntranslatableError(
        'input_type',
        'is required by Cohere: search_document, search_query, classification or clustering',
      )
    return { texts, input_type: inputType, ...(dimensions !== null && { output_dimension: dimensions }) }
  },
  answer(value) {
    const tokens = isTokens(value.inputTextTokenCount) ? value.inputTextTokenCount : null
    if (Array.isArray(value.embedding)) return { vectors: [value.embedding], tokens }
    const all = isObject(value.embeddings) ? { embeddings: value.embeddings.float } : value
    return { vectors: listIn(all, 'embeddings'), tokens }
  },
}

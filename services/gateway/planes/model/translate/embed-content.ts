import { isObject, type JsonObject, member } from '@plat/core'
import { isSet, isTokens } from '../dialects/checks.ts'
import { InvalidResponseError } from '../invalid.ts'
import { type EmbeddingCaller, type EmbeddingInput, type EmbeddingProvider, numbersOf } from './embeddings.ts'
import { UntranslatableError } from './prompt.ts'

/** `embedContent` of Google's API. */
export const embedContentCaller: EmbeddingCaller = {
  read: (value) => inputOf([value], ''),
  write({ vectors, tokens }) {
    const [values] = numbersOf(vectors)
    if (values === undefined) throw new InvalidResponseError('no vector')
    return { embedding: { values }, ...usageOf(tokens) }
  },
}

/** `batchEmbedContents` of Google's API. */
export const batchEmbedContentsCaller: EmbeddingCaller = {
  read: ({ requests }) => inputOf(Array.isArray(requests) ? requests.filter(isObject) : [], 'requests[].'),
  write: ({ vectors, tokens }) => ({
    embeddings: numbersOf(vectors).map((values) => ({ values })),
    ...usageOf(tokens),
  }),
}

function usageOf(tokens: ReturnType<EmbeddingProvider['answer']>['tokens']): JsonObject {
  return tokens === null ? {} : { usageMetadata: { promptTokenCount: tokens } }
}

/** `model` of a request is left out: the path names the model. */
function inputOf(requests: readonly JsonObject[], at: string): EmbeddingInput {
  const dimensions = common(requests, 'outputDimensionality', at)
  const type = common(requests, 'taskType', at)
  if (isSet(dimensions) && !isTokens(dimensions))
    throw new UntranslatableError(`${at}outputDimensionality`, 'must be a whole number')
  if (isSet(type) && typeof type !== 'string') throw new UntranslatableError(`${at}taskType`, 'must be a word')
  const titles = requests.map(({ title }) => titleOf(title, at))
  return {
    texts: requests.map((request) => textOf(request, at)),
    dimensions: isTokens(dimensions) ? dimensions : null,
    inputType: typeof type === 'string' ? type : null,
    isTaskType: true,
    titles: titles.some((title) => title !== null) ? titles : null,
    names: { input: at === '' ? 'content' : 'requests', inputType: `${at}taskType` },
  }
}

/** The value of a member that all requests share: other providers have one for all texts. */
function common([first, ...others]: readonly JsonObject[], name: string, at: string): unknown {
  const value = first?.[name]
  if (others.every((one) => one[name] === value)) return value
  throw new UntranslatableError(at + name, 'must be the same in all requests')
}

function titleOf(title: unknown, at: string): string | null {
  if (!isSet(title)) return null
  if (typeof title === 'string') return title
  throw new UntranslatableError(`${at}title`, 'must be text')
}

/** The text of a request. Several parts would be joined in a way that is the provider's own. */
function textOf({ content }: JsonObject, at: string): string {
  const parts = member(content, 'parts')
  const [part, ...others] = Array.isArray(parts) ? parts : []
  const text = member(part, 'text')
  if (others.length > 0 || typeof text !== 'string' || Object.keys(part).length > 1)
    throw new UntranslatableError(`${at}content.parts`, 'must be one text')
  return text
}

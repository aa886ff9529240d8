import { InvalidResponseError } from '../invalid.ts'
import { batchEmbedContentsCaller, embedContentCaller } from './embed-content.ts'
import {
  bedrockEmbeddings,
  type EmbeddingCaller,
  type EmbeddingProvider,
  geminiEmbeddings,
  openaiCaller,
  openaiEmbeddings,
  vectorsIn,
  vertexEmbeddings,
} from './embeddings.ts'
import { SSE_TYPE } from './streams.ts'
import { bytesOf, type Speech, type Translator, translated, writingSteps } from './translator.ts'

const EMBEDDING_CALLERS: Readonly<Record<string, EmbeddingCaller>> = {
  embeddings: openaiCaller,
  embedContent: embedContentCaller,
  batchEmbedContents: batchEmbedContentsCaller,
}

const EMBEDDING_PROVIDERS: Readonly<Partial<Record<Speech, EmbeddingProvider>>> = {
  openai: openaiEmbeddings,
  gemini: geminiEmbeddings,
  'gemini-vertex': vertexEmbeddings,
  converse: bedrockEmbeddings,
}

function embeddingTranslator(caller: EmbeddingCaller, provider: EmbeddingProvider): Translator {
  return {
    streamType: SSE_TYPE,
    sameHeaders: false,
    request: ({ body, model }) => translated(() => bytesOf(provider.request(caller.read(body.value), model))),
    *answer(json, { model }, request) {
      const value = vectorsIn(json)
      yield
      const answer = provider.answer(value)
      if (answer.vectors.length !== caller.read(request).texts.length)
        throw new InvalidResponseError('another number of vectors than texts')
      const written = caller.write(answer, { model, request })
      yield
      return yield* writingSteps(() => written)
    },
    stream: () => null,
  }
}

/** Translators of embeddings by `<method> <speech of the provider>`. */
export const embeddingTranslators: readonly (readonly [string, Translator])[] = Object.entries(
  EMBEDDING_CALLERS,
).flatMap(([method, caller]) =>
  Object.entries(EMBEDDING_PROVIDERS).map(([speaks, provider]): [string, Translator] => [
    `${method} ${speaks}`,
    embeddingTranslator(caller, provider),
  ]),
)

import type { JsonObject, Steps } from '@plat/core'
import { type Denial, deny } from '../../../call/index.ts'
import type { ModelBody } from '../request.ts'
import { LongTexts } from './long-texts.ts'
import { UntranslatableError } from './prompt.ts'
import type { ResponseFacts } from './response-parts.ts'
import type { StreamTranslator } from './streams.ts'

/** The languages of providers (a wire's `speaks`) that are not the caller's own, with what is translated into them. */
export type Speech =
  | 'openai'
  | 'anthropic'
  | 'anthropic-bedrock'
  | 'anthropic-vertex'
  | 'converse'
  | 'gemini'
  | 'gemini-vertex'

/** A request to translate for a provider with another API. */
export interface TranslatableRequest {
  readonly body: ModelBody
  readonly model: string
  /** The model takes `max_completion_tokens` in OpenAI's API. */
  readonly reasoning: boolean
  /** `anthropic-beta` of the caller; null: none. */
  readonly betas: string | null
}

/** Translates requests to a provider's API, and its responses to the caller's API. */
export interface Translator {
  /** The body for the provider; a denial names the member that it has no word for (`data.param`). */
  request(request: TranslatableRequest): Uint8Array | Denial
  /** A whole response in the caller's dialect, in steps: the longest parses the response. Throws `InvalidResponseError`. */
  answer(json: Uint8Array, facts: ResponseFacts, request: JsonObject): Steps<Uint8Array>
  /** The translator of one streamed response; null: the stream is in the caller's dialect as it comes. */
  stream(facts: ResponseFacts): StreamTranslator | null
  /** Media type of the provider's streams. */
  readonly streamType: string
  /** The provider reads the headers of the caller's API as well. */
  readonly sameHeaders: boolean
}

/** A body as bytes. */
export function bytesOf(value: JsonObject): Uint8Array {
  return Buffer.from(JSON.stringify(value))
}

/** The same in steps, for a value that `create` makes with long texts. */
export function* writingSteps(create: (texts: LongTexts) => JsonObject): Steps<Uint8Array> {
  const texts = new LongTexts()
  const value = create(texts)
  yield
  const json = JSON.stringify(value)
  yield
  const text = yield* texts.write(json)
  yield
  return Buffer.from(text)
}

/** Returns the result of a translation; a denial with the member that cannot be translated. */
export function translated(work: () => Uint8Array): Uint8Array | Denial {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof UntranslatableError)) throw error
    return deny('invalid_request', error.message, { data: { param: error.param } })
  }
}

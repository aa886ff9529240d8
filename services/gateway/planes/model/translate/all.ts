import { isObject, type JsonObject, withoutMembers } from '@plat/core'
import { type Denial, deny } from '../../../call/index.ts'
import { member } from '../../wire/json.ts'
import { withMember } from '../members.ts'
import type { ModelBody } from '../request.ts'
import { AnthropicReader, anthropicAnswer, anthropicRequest, CLOUD_VERSIONS } from './anthropic.ts'
import { ConverseReader, converseAnswer, converseRequest } from './converse.ts'
import { GeminiReader, geminiRequest } from './gemini.ts'
import { UntranslatableError } from './prompt.ts'
import { completionOf, type ResponseFacts, type ResponsePart } from './response-parts.ts'
import {
  AWS_STREAM_TYPE,
  AwsParts,
  AwsToMessages,
  objectOf,
  SSE_TYPE,
  SseParts,
  type StreamTranslator,
  ToChat,
  wrapped,
} from './streams.ts'

/** The languages of providers (a wire's `speaks`) that are not the caller's own, with what is translated into them. */
export type Speech = 'openai' | 'anthropic' | 'anthropic-bedrock' | 'anthropic-vertex' | 'converse' | 'gemini'

/** A request to translate for a provider with another API. */
export interface TranslatableRequest {
  readonly body: ModelBody
  readonly model: string
  /** `anthropic-beta` of the caller; null: none. */
  readonly betas: string | null
}

/** Translates requests to a provider's API, and its responses to the caller's dialect. */
export interface Translator {
  /** The body for the provider; a denial names the member that it has no word for (`data.param`). */
  request(request: TranslatableRequest): Uint8Array | Denial
  /** A whole answer in the caller's dialect. Throws `InvalidResponseError`. */
  answer(json: Uint8Array, facts: ResponseFacts): Uint8Array
  /** The translator of one streamed answer; null: the stream is in the caller's dialect as it comes. */
  stream(facts: ResponseFacts): StreamTranslator | null
  /** Media type of the provider's streams. */
  readonly streamType: string
}

/** Translation of chat completions for one provider. */
interface ChatParts {
  request(value: JsonObject, request: TranslatableRequest): JsonObject
  answer(value: JsonObject, facts: ResponseFacts): readonly ResponsePart[]
  stream(facts: ResponseFacts): StreamTranslator
  readonly streamType: string
}

function chatTranslator(parts: ChatParts): Translator {
  return {
    streamType: parts.streamType,
    request: (request) => translated(() => Buffer.from(JSON.stringify(parts.request(request.body.value, request)))),
    answer: (json, facts) => Buffer.from(JSON.stringify(completionOf(parts.answer(objectOf(json), facts), facts))),
    stream: (facts) => parts.stream(facts),
  }
}

function translated(work: () => Uint8Array): Uint8Array | Denial {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof UntranslatableError)) throw error
    return deny('invalid_request', error.message, { data: { param: error.param } })
  }
}

const converse: ChatParts = {
  streamType: AWS_STREAM_TYPE,
  request: (value) => converseRequest(value),
  answer: (value) => converseAnswer(value),
  stream: (facts) => {
    const reader = new ConverseReader()
    return new ToChat(facts, new AwsParts(), (value, name) => reader.partsOf(name, value))
  },
}

const gemini: ChatParts = {
  streamType: SSE_TYPE,
  request: (value) => geminiRequest(value),
  answer: (value, { id }) => new GeminiReader(id).partsOf(value),
  stream: (facts) => {
    const reader = new GeminiReader(facts.id)
    return new ToChat(facts, new SseParts(), (value) => reader.partsOf(value))
  },
}

const anthropic: ChatParts = {
  streamType: SSE_TYPE,
  request: (value, { model }) => ({ model, ...anthropicRequest(value) }),
  answer: (value) => anthropicAnswer(value),
  stream: (facts) => {
    const reader = new AnthropicReader()
    return new ToChat(facts, new SseParts(), (value) => reader.partsOf(value))
  },
}

/** Vertex AI has the model in the path, and the version in the body. */
const anthropicOnVertex: ChatParts = {
  ...anthropic,
  request: (value) => ({ anthropic_version: CLOUD_VERSIONS.vertex, ...anthropicRequest(value) }),
}

/** Bedrock has the wish for a stream in the path as well, and wraps each event of it. */
const anthropicOnBedrock: ChatParts = {
  ...anthropic,
  streamType: AWS_STREAM_TYPE,
  request(value) {
    const { stream: _, ...request } = anthropicRequest(value)
    return { anthropic_version: CLOUD_VERSIONS.bedrock, ...request }
  },
  stream(facts) {
    const reader = new AnthropicReader()
    return new ToChat(facts, new AwsParts(), (value) => reader.partsOf(objectOf(wrapped(value))))
  },
}

/** `messages` on Vertex AI: the same request and the same answers, but for where the model and the version stand. */
const messagesOnVertex: Translator = {
  streamType: SSE_TYPE,
  request: (request) => ofCloud(request, CLOUD_VERSIONS.vertex, ['model']).bytes,
  answer: (json) => json,
  stream: () => null,
}

const messagesOnBedrock: Translator = {
  streamType: AWS_STREAM_TYPE,
  request({ body, betas }) {
    const converted = ofCloud({ body }, CLOUD_VERSIONS.bedrock, ['model', 'stream'])
    const list = betas === null ? [] : betas.split(',').map((one) => one.trim())
    return list.length === 0 ? converted.bytes : added(converted, 'anthropic_beta', list).bytes
  },
  answer: (json) => json,
  stream: () => new AwsToMessages(),
}

type Written = Pick<ModelBody, 'bytes' | 'value'>

/** Every byte stays as it was, but for what the cloud wants elsewhere. */
function ofCloud({ body }: Pick<TranslatableRequest, 'body'>, version: string, without: readonly string[]): Written {
  const gone = without.filter((name) => Object.hasOwn(body.value, name))
  const bytes = withoutMembers(
    body.bytes,
    gone.map((name) => [name]),
  )
  const value = Object.fromEntries(Object.entries(body.value).filter(([name]) => !gone.includes(name)))
  return added({ bytes, value }, 'anthropic_version', version)
}

/** The same with one member more. */
function added(written: Written, name: string, member: unknown): Written {
  return { bytes: withMember(written, name, JSON.stringify(member)), value: { ...written.value, [name]: member } }
}

const TRANSLATORS: ReadonlyMap<string, Translator> = new Map([
  ['chat/completions converse', chatTranslator(converse)],
  ['chat/completions gemini', chatTranslator(gemini)],
  ['chat/completions anthropic', chatTranslator(anthropic)],
  ['chat/completions anthropic-vertex', chatTranslator(anthropicOnVertex)],
  ['chat/completions anthropic-bedrock', chatTranslator(anthropicOnBedrock)],
  ['messages anthropic-vertex', messagesOnVertex],
  ['messages anthropic-bedrock', messagesOnBedrock],
])

/** Null: the provider speaks the caller's dialect. */
export function translatorOf(speaks: Speech, method: string): Translator | null {
  // Most do, and need no search.
  return speaks === 'openai' ? null : (TRANSLATORS.get(`${method} ${speaks}`) ?? null)
}

/** Returns the message of a provider's error: most have a `message`, some in a member `error`. */
export function refusalOf(value: unknown): string {
  const error = member(value, 'error')
  const message = typeof error === 'string' ? error : member(isObject(error) ? error : value, 'message')
  return typeof message === 'string' && message !== '' ? message : UNTOLD
}

const UNTOLD = 'the provider refused the request and did not say why'

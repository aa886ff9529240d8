import { isObject, type JsonObject, member, type Steps, withoutMembers } from '@plat/core'
import { withMember } from '../members.ts'
import type { ModelBody } from '../request.ts'
import { AnthropicReader, anthropicAnswer, anthropicRequest, CLOUD_VERSIONS } from './anthropic.ts'
import { readChat } from './chat.ts'
import { readClaude } from './claude-request.ts'
import { MessageStream, messageOf } from './claude-response.ts'
import { ConverseReader, converseAnswer, converseRequest } from './converse.ts'
import { embeddingTranslators } from './embedding-translators.ts'
import { GeminiReader, geminiRequest } from './gemini.ts'
import { readContents } from './gemini-request.ts'
import { ContentStream, contentOf } from './gemini-response.ts'
import { ChatReader, chatAnswer, chatRequest } from './openai.ts'
import type { Option, Prompt, ReadPrompt } from './prompt.ts'
import {
  ChatStream,
  completionOf,
  type PartWriter,
  type ResponseFacts,
  type ResponsePart,
  type WriterContext,
} from './response-parts.ts'
import { readResponses } from './responses-request.ts'
import { ResponseStream, responseOf } from './responses-response.ts'
import {
  AWS_STREAM_TYPE,
  AwsParts,
  AwsToMessages,
  objectOf,
  type ProviderObject,
  type ProviderStream,
  SSE_TYPE,
  SseParts,
  WrittenStream,
  wrapped,
} from './streams.ts'
import {
  bytesOf,
  type Speech,
  type TranslatableRequest,
  type Translator,
  translated,
  writingSteps,
} from './translator.ts'

/** Translation of chats in one API of callers. */
interface Caller {
  /** Throws `UntranslatableError`. */
  read(value: JsonObject, options: readonly Option[], stream: boolean): Prompt
  /** A whole response. Throws `InvalidResponseError`. */
  whole(parts: readonly ResponsePart[], context: WriterContext): JsonObject
  stream(context: WriterContext): PartWriter
}

const CALLERS: Readonly<Record<string, Caller>> = {
  'chat/completions': { read: readChat, whole: completionOf, stream: (context) => new ChatStream(context) },
  messages: { read: readClaude, whole: messageOf, stream: (context) => new MessageStream(context) },
  generateContent: { read: readContents, whole: contentOf, stream: (context) => new ContentStream(context) },
  responses: { read: readResponses, whole: responseOf, stream: (context) => new ResponseStream(context) },
}

/** Translation of chats for one provider. */
interface ChatParts {
  request(read: ReadPrompt, request: TranslatableRequest): JsonObject
  answer(response: ProviderObject, facts: ResponseFacts): readonly ResponsePart[]
  stream(facts: ResponseFacts): ProviderStream
  readonly streamType: string
}

function chatTranslator(caller: Caller, parts: ChatParts): Translator {
  return {
    streamType: parts.streamType,
    sameHeaders: false,
    request: (request) =>
      translated(() => {
        const { value, request: read } = request.body
        return bytesOf(parts.request((options) => caller.read(value, options, read.stream), request))
      }),
    *answer(json, facts) {
      const response = objectOf(json)
      yield
      const read = parts.answer(response, facts)
      yield
      return yield* writingSteps((texts) => caller.whole(read, { facts, texts }))
    },
    stream: (facts) => new WrittenStream((texts) => caller.stream({ facts, texts }), parts.stream(facts)),
  }
}

const openai: ChatParts = {
  streamType: SSE_TYPE,
  request: chatRequest,
  answer: ({ value }) => chatAnswer(value),
  stream: () => {
    const reader = new ChatReader()
    return { parts: new SseParts(), read: ({ value }) => reader.partsOf(value) }
  },
}

const converse: ChatParts = {
  streamType: AWS_STREAM_TYPE,
  request: (read) => converseRequest(read),
  answer: converseAnswer,
  stream: () => {
    const reader = new ConverseReader()
    return { parts: new AwsParts(), read: ({ value }, name) => reader.partsOf(name, value) }
  },
}

const gemini: ChatParts = {
  streamType: SSE_TYPE,
  request: (read) => geminiRequest(read),
  answer: (response, { id }) => new GeminiReader(id).partsOf(response),
  stream: (facts) => {
    const reader = new GeminiReader(facts.id)
    return { parts: new SseParts(), read: (part) => reader.partsOf(part) }
  },
}

const anthropic: ChatParts = {
  streamType: SSE_TYPE,
  request: (read, { model }) => ({ model, ...anthropicRequest(read) }),
  answer: anthropicAnswer,
  stream: () => {
    const reader = new AnthropicReader()
    return { parts: new SseParts(), read: ({ value }) => reader.partsOf(value) }
  },
}

/** Vertex AI has the model in the path, and the version in the body. */
const anthropicOnVertex: ChatParts = {
  ...anthropic,
  request: (read) => ({ anthropic_version: CLOUD_VERSIONS.vertex, ...anthropicRequest(read) }),
}

/** Bedrock has the wish for a stream in the path as well, and wraps each event of it. */
const anthropicOnBedrock: ChatParts = {
  ...anthropic,
  streamType: AWS_STREAM_TYPE,
  request(read) {
    const { stream: _, ...request } = anthropicRequest(read)
    return { anthropic_version: CLOUD_VERSIONS.bedrock, ...request }
  },
  stream() {
    const reader = new AnthropicReader()
    return { parts: new AwsParts(), read: ({ value }) => reader.partsOf(objectOf(wrapped(value)).value) }
  },
}

/** The response is in the caller's API already. */
// biome-ignore lint/correctness/useYield: without steps
function* same(json: Uint8Array): Steps<Uint8Array> {
  return json
}

/** `messages` on Vertex AI: the same request and the same answers, but for where the model and the version stand. */
const messagesOnVertex: Translator = {
  streamType: SSE_TYPE,
  sameHeaders: true,
  request: (request) => ofCloud(request, CLOUD_VERSIONS.vertex, ['model']).bytes,
  answer: same,
  stream: () => null,
}

const messagesOnBedrock: Translator = {
  streamType: AWS_STREAM_TYPE,
  sameHeaders: true,
  request({ body, betas }) {
    const converted = ofCloud({ body }, CLOUD_VERSIONS.bedrock, ['model', 'stream'])
    const list = betas === null ? [] : betas.split(',').map((one) => one.trim())
    return list.length === 0 ? converted.bytes : added(converted, 'anthropic_beta', list).bytes
  },
  answer: same,
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

const PROVIDERS: Readonly<Record<Speech, ChatParts>> = {
  openai,
  converse,
  gemini,
  'gemini-vertex': gemini,
  anthropic,
  'anthropic-vertex': anthropicOnVertex,
  'anthropic-bedrock': anthropicOnBedrock,
}

const TRANSLATORS: ReadonlyMap<string, Translator> = new Map([
  ...Object.entries(CALLERS).flatMap(([method, caller]) =>
    Object.entries(PROVIDERS).map(([speaks, parts]): [string, Translator] => [
      `${method} ${speaks}`,
      chatTranslator(caller, parts),
    ]),
  ),
  ['messages anthropic-vertex', messagesOnVertex],
  ['messages anthropic-bedrock', messagesOnBedrock],
  ...embeddingTranslators,
])

/** Returns the translator of a method for a provider that does not support it itself; null: there is none. */
export function translatorOf(speaks: Speech, method: string): Translator | null {
  return TRANSLATORS.get(`${method} ${speaks}`) ?? null
}

/** Returns the message of a provider's error: most have a `message`, some in a member `error`. */
export function refusalOf(value: unknown): string {
  const error = member(value, 'error')
  const message = typeof error === 'string' ? error : member(isObject(error) ? error : value, 'message')
  return typeof message === 'string' && message !== '' ? message : UNTOLD
}

const UNTOLD = 'the provider refused the request and did not say why'

import { isObject, type JsonObject } from '@plat/core'
import type { Usage } from '../../../call/index.ts'
import type { NestedJson } from '../../wire/nested.ts'
import { isSet, isTokens } from '../dialects/checks.ts'
import { InvalidResponseError } from '../invalid.ts'
import type { LongTexts } from './long-texts.ts'

/** Parts of a provider's response, in order. */
export type ResponsePart =
  | { readonly kind: 'text' | 'reasoning'; readonly text: string }
  | { readonly kind: 'call'; readonly id: string; readonly name: string; readonly signature: string | null }
  /** More of the arguments (JSON) of the call that was named last. */
  | { readonly kind: 'arguments'; readonly text: string }
  | { readonly kind: 'finish'; readonly reason: FinishReason }
  | { readonly kind: 'usage'; readonly usage: Usage }

export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter'

/** Members that every chunk of a translated response has. */
export interface ResponseFacts {
  readonly id: string
  /** Seconds since the epoch. */
  readonly created: number
  readonly model: string
}

/** A count of a usage report; 0 where it is absent. Throws `InvalidResponseError` where it is not a count: calls are metered by it. */
export function countOf(value: unknown): number {
  if (!isSet(value)) return 0
  if (!isTokens(value)) throw new InvalidResponseError('a usage report that does not hold whole numbers')
  return value
}

/** Returns the end of a response, from the provider's name for it. Throws `InvalidResponseError` for other names: the response may be incomplete. */
export function finishOf(
  ends: Readonly<Record<string, FinishReason>>,
  reason: unknown,
  provider: string,
): Extract<ResponsePart, { kind: 'finish' }> {
  const known = typeof reason === 'string' && Object.hasOwn(ends, reason) ? ends[reason] : undefined
  if (known === undefined) throw new InvalidResponseError(`a response of ${provider} with an unknown stop reason`)
  return { kind: 'finish', reason: known }
}

/** Returns a tool call of a response. Throws `InvalidResponseError` if a client could not respond to it. */
export function toolCallPart(id: unknown, name: unknown, provider: string): ResponsePart {
  if (typeof id !== 'string' || typeof name !== 'string')
    throw new InvalidResponseError(`a response of ${provider} with a tool call without id or name`)
  return { kind: 'call', id, name, signature: null }
}

/** A piece of a whole response: adjacent texts are one, and a call has its arguments as JSON. */
export type ContentPiece =
  | { readonly kind: 'text' | 'reasoning'; readonly text: string }
  | {
      readonly kind: 'call'
      readonly id: string
      readonly name: string
      readonly signature: string | null
      readonly json: string
    }

/** Most texts and calls of a whole response: the arguments of each call are parsed. */
const MAX_PIECES = 10_000

/** Returns the pieces of a whole response, its end and its usage. Throws `InvalidResponseError` if it has no end. */
export function summaryOf(parts: readonly ResponsePart[]) {
  let finish: FinishReason | null = null
  let usage: Usage | null = null
  const groups: { first: Extract<ResponsePart, { kind: 'text' | 'reasoning' | 'call' }>; pieces: string[] }[] = []
  for (const part of parts) {
    const last = groups.at(-1)
    if (part.kind === 'finish') finish = part.reason
    else if (part.kind === 'usage') usage = part.usage
    else if (groups.length > MAX_PIECES) throw new InvalidResponseError('a response with too many parts')
    else if (part.kind === 'arguments') last?.pieces.push(part.text)
    else if (part.kind === 'call') groups.push({ first: part, pieces: [] })
    else if (last?.first.kind === part.kind) last.pieces.push(part.text)
    else groups.push({ first: part, pieces: [part.text] })
  }
  if (finish === null) throw new InvalidResponseError('a response without an end')
  const content = groups.map(({ first, pieces }): ContentPiece => {
    const text = pieces.join('')
    return first.kind === 'call' ? { ...first, json: text || '{}' } : { kind: first.kind, text }
  })
  return { content, finish, usage }
}

/** Facts of a response, and its long texts. */
export interface WriterContext {
  readonly facts: ResponseFacts
  readonly texts: LongTexts
}

/** Writes the parts of a streamed response in the caller's API. Long texts are placeholders of its context, in order. */
export interface PartWriter {
  /** Returns the events for a part; empty where nothing is to be sent. */
  event(part: ResponsePart): string
  /** Returns the end of the stream; empty without a finish reason of the provider, so that an incomplete response has no end. */
  end(): string
}

/** Returns the arguments of a call as an object. Numbers keep their literals. Throws `InvalidResponseError`. */
export function argumentsIn(json: string, nested: NestedJson): JsonObject {
  const args = nested.parseLossless(json)
  if (args === undefined) throw new InvalidResponseError('a tool call whose arguments are not JSON, or too large')
  if (!isObject(args) || JSON.isRawJSON(args))
    throw new InvalidResponseError('a tool call whose arguments are not an object')
  return args
}

/** A whole `chat.completion` of OpenAI's API. */
export function completionOf(all: readonly ResponsePart[], { facts, texts }: WriterContext): JsonObject {
  const { content, finish, usage } = summaryOf(all)
  const textOf = (kind: 'text' | 'reasoning') =>
    content.flatMap((one) => (one.kind === 'call' || one.kind !== kind ? [] : [one.text])).join('')
  const calls = content.flatMap((one) => (one.kind === 'call' ? [withArguments(callOf(one), texts.of(one.json))] : []))
  const [text, reasoning] = [textOf('text'), textOf('reasoning')]
  const message = {
    role: 'assistant',
    content: text === '' ? null : texts.of(text),
    refusal: null,
    ...(reasoning !== '' && { reasoning_content: texts.of(reasoning) }),
    ...(calls.length > 0 && { tool_calls: calls }),
  }
  return {
    ...facts,
    object: 'chat.completion',
    choices: [{ index: 0, message, logprobs: null, finish_reason: finish }],
    ...(usage !== null && { usage: usageOf(usage) }),
  }
}

/** A call of a tool without its arguments. */
function callOf({
  id,
  name,
  signature,
}: Pick<Extract<ContentPiece, { kind: 'call' }>, 'id' | 'name' | 'signature'>): JsonObject {
  const extra = signature === null ? null : { extra_content: { google: { thought_signature: signature } } }
  return { id, type: 'function', function: { name }, ...extra }
}

function withArguments(call: JsonObject, text: unknown): JsonObject {
  return { ...call, function: { ...(isObject(call.function) ? call.function : null), arguments: text } }
}

/** Writes `chat.completion.chunk` events. The last chunk before the end always has the usage. */
export class ChatStream implements PartWriter {
  readonly #facts: ResponseFacts
  readonly #texts: LongTexts
  #begun = false
  #calls = 0
  /** A call was named, and nothing of its arguments came. */
  #bare = false
  #finish: FinishReason | null = null
  #usage: Usage | null = null

  constructor({ facts, texts }: WriterContext) {
    this.#facts = facts
    this.#texts = texts
  }

  end(): string {
    if (this.#finish === null) return ''
    const bare = this.#noArguments()
    const last = this.#chunk([{ index: 0, delta: {}, logprobs: null, finish_reason: this.#finish }])
    const usage = this.#usage === null ? '' : this.#chunk([], { usage: usageOf(this.#usage) })
    return `${bare}${last}${usage}data: [DONE]\n\n`
  }

  event(one: ResponsePart): string {
    switch (one.kind) {
      case 'text':
        return this.#delta({ content: this.#texts.of(one.text) })
      case 'reasoning':
        return this.#delta({ reasoning_content: this.#texts.of(one.text) })
      case 'call': {
        const bare = this.#noArguments()
        this.#bare = true
        return bare + this.#delta({ tool_calls: [{ index: this.#calls++, ...withArguments(callOf(one), '') }] })
      }
      case 'arguments':
        return one.text === '' ? '' : this.#arguments(one.text)
      case 'finish':
        this.#finish = one.reason
        return ''
      case 'usage':
        this.#usage = one.usage
        return ''
    }
  }

  /** Clients parse what they got as arguments: nothing is not JSON. */
  #noArguments(): string {
    return this.#bare ? this.#arguments('{}') : ''
  }

  #arguments(text: string): string {
    this.#bare = false
    return this.#delta({
      tool_calls: [{ index: Math.max(0, this.#calls - 1), function: { arguments: this.#texts.of(text) } }],
    })
  }

  #delta(delta: JsonObject): string {
    const first = this.#begun ? delta : { role: 'assistant', ...delta }
    this.#begun = true
    return this.#chunk([{ index: 0, delta: first, logprobs: null, finish_reason: null }])
  }

  #chunk(choices: readonly JsonObject[], more: JsonObject = {}): string {
    return `data: ${JSON.stringify({ ...this.#facts, object: 'chat.completion.chunk', choices, ...more })}\n\n`
  }
}

/** Returns the usage in OpenAI's format, with an additional member for tokens written to a cache. */
function usageOf({ prompt, completion, cachedRead, cachedWrite, reasoning }: Usage): JsonObject {
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: cachedRead, ...(cachedWrite > 0 && { cache_write_tokens: cachedWrite }) },
    completion_tokens_details: { reasoning_tokens: reasoning },
  }
}

import { isObject, type JsonObject } from '@plat/core'
import type { Usage } from '../../../call/index.ts'
import { isSet, isTokens } from '../dialects/checks.ts'
import { InvalidResponseError } from '../invalid.ts'

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

/** A count of a usage report; 0 where it is absent. Throws `InvalidResponseError` where it is no count: calls are metered by it. */
export function countOf(value: unknown): number {
  if (!isSet(value)) return 0
  if (!isTokens(value)) throw new InvalidResponseError('a usage report that does not hold whole numbers')
  return value
}

/** The end of an answer, by the provider's words for its ends. Throws `InvalidResponseError` where it is none of them: half an answer is not a whole one. */
export function finishOf(
  ends: Readonly<Record<string, FinishReason>>,
  reason: unknown,
  whom: string,
): Extract<ResponsePart, { kind: 'finish' }> {
  const known = typeof reason === 'string' && Object.hasOwn(ends, reason) ? ends[reason] : undefined
  if (known === undefined) throw new InvalidResponseError(`an answer of ${whom} that ended for a reason that is no end`)
  return { kind: 'finish', reason: known }
}

/** Returns a tool call of a response. Throws `InvalidResponseError` if a client could not respond to it. */
export function callSaid(id: unknown, name: unknown, whom: string): ResponsePart {
  if (typeof id !== 'string' || typeof name !== 'string')
    throw new InvalidResponseError(`an answer of ${whom} with a call of a tool that has no id or no name`)
  return { kind: 'call', id, name, signature: null }
}

/** A whole `chat.completion` of OpenAI's API. */
export function completionOf(all: readonly ResponsePart[], facts: ResponseFacts): JsonObject {
  let finish: FinishReason | null = null
  let usage: Usage | null = null
  const texts = { text: '', reasoning: '' }
  const calls: { call: JsonObject; text: string }[] = []
  for (const one of all) {
    if (one.kind === 'text' || one.kind === 'reasoning') texts[one.kind] += one.text
    else if (one.kind === 'call') calls.push({ call: callOf(one), text: '' })
    else if (one.kind === 'finish') finish = one.reason
    else if (one.kind === 'usage') usage = one.usage
    else {
      const last = calls.at(-1)
      if (last !== undefined) last.text += one.text
    }
  }
  if (finish === null) throw new InvalidResponseError('an answer without an end')
  const message = {
    role: 'assistant',
    content: texts.text === '' ? null : texts.text,
    refusal: null,
    ...(texts.reasoning !== '' && { reasoning_content: texts.reasoning }),
    ...(calls.length > 0 && { tool_calls: calls.map(({ call, text }) => withArguments(call, text || '{}')) }),
  }
  return {
    ...facts,
    object: 'chat.completion',
    choices: [{ index: 0, message, logprobs: null, finish_reason: finish }],
    ...(usage !== null && { usage: usageOf(usage) }),
  }
}

/** A call of a tool without its arguments. */
function callOf({ id, name, signature }: Extract<ResponsePart, { kind: 'call' }>): JsonObject {
  const extra = signature === null ? null : { extra_content: { google: { thought_signature: signature } } }
  return { id, type: 'function', function: { name }, ...extra }
}

function withArguments(call: JsonObject, text: string): JsonObject {
  return { ...call, function: { ...(isObject(call.function) ? call.function : null), arguments: text } }
}

/** Writes `chat.completion.chunk` events. The last chunk before the end always has the usage. */
export class ChatStream {
  readonly #facts: ResponseFacts
  #begun = false
  #calls = 0
  /** A call was named, and nothing of its arguments came. */
  #bare = false
  #finish: FinishReason | null = null
  #usage: Usage | null = null

  constructor(facts: ResponseFacts) {
    this.#facts = facts
  }

  /** The events for what was said; empty where nothing has to go on. */
  events(all: readonly ResponsePart[]): string {
    return all.map((one) => this.#event(one)).join('')
  }

  /** Returns the end of the stream; empty without a finish reason of the provider, so that an incomplete response has no end. */
  end(): string {
    if (this.#finish === null) return ''
    const bare = this.#noArguments()
    const last = this.#chunk([{ index: 0, delta: {}, logprobs: null, finish_reason: this.#finish }])
    const usage = this.#usage === null ? '' : this.#chunk([], { usage: usageOf(this.#usage) })
    return `${bare}${last}${usage}data: [DONE]\n\n`
  }

  #event(one: ResponsePart): string {
    switch (one.kind) {
      case 'text':
        return this.#delta({ content: one.text })
      case 'reasoning':
        return this.#delta({ reasoning_content: one.text })
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
    return this.#delta({ tool_calls: [{ index: Math.max(0, this.#calls - 1), function: { arguments: text } }] })
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

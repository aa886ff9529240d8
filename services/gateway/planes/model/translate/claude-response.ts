import type { JsonObject } from '@plat/core'
import type { Usage } from '../../../call/index.ts'
import { NestedJson } from '../../wire/nested.ts'
import type { LongTexts } from './long-texts.ts'
import {
  argumentsIn,
  type FinishReason,
  type PartWriter,
  type ResponseFacts,
  type ResponsePart,
  summaryOf,
  type WriterContext,
} from './response-parts.ts'

const ENDS: Readonly<Record<FinishReason, string>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
  content_filter: 'refusal',
}

/** A whole `message` of Anthropic's API. Throws `InvalidResponseError`. */
export function messageOf(parts: readonly ResponsePart[], { facts: { id, model }, texts }: WriterContext): JsonObject {
  const { content, finish, usage } = summaryOf(parts)
  const nested = new NestedJson()
  return {
    id,
    type: 'message',
    role: 'assistant',
    model,
    content: content.map((one) =>
      one.kind === 'call'
        ? { ...toolUse(one), input: argumentsIn(one.json, nested) }
        : one.kind === 'text'
          ? { type: 'text', text: texts.of(one.text) }
          : { type: 'thinking', thinking: texts.of(one.text), signature: '' },
    ),
    stop_reason: ENDS[finish],
    stop_sequence: null,
    usage: usageOf(usage),
  }
}

function toolUse({ id, name, signature }: Pick<Extract<ResponsePart, { kind: 'call' }>, 'id' | 'name' | 'signature'>) {
  const extra = signature === null ? null : { extra_content: { google: { thought_signature: signature } } }
  return { type: 'tool_use', id, name, input: {}, ...extra }
}

type BlockKind = 'text' | 'thinking' | 'tool_use'

/** Writes the events of a streamed message. */
export class MessageStream implements PartWriter {
  readonly #facts: ResponseFacts
  readonly #texts: LongTexts
  #begun = false
  #index = -1
  #open: BlockKind | null = null
  #finish: FinishReason | null = null
  #usage: Usage | null = null

  constructor({ facts, texts }: WriterContext) {
    this.#facts = facts
    this.#texts = texts
  }

  event(part: ResponsePart): string {
    return this.#start() + this.#written(part)
  }

  end(): string {
    if (this.#finish === null) return ''
    const delta = { stop_reason: ENDS[this.#finish], stop_sequence: null }
    const last = eventOf({ type: 'message_delta', delta, usage: usageOf(this.#usage) })
    return this.#start() + this.#stop() + last + eventOf({ type: 'message_stop' })
  }

  #written(part: ResponsePart): string {
    switch (part.kind) {
      case 'text':
        return (
          this.#block('text', { type: 'text', text: '' }) +
          this.#delta({ type: 'text_delta', text: this.#texts.of(part.text) })
        )
      case 'reasoning':
        return (
          this.#block('thinking', { type: 'thinking', thinking: '', signature: '' }) +
          this.#delta({ type: 'thinking_delta', thinking: this.#texts.of(part.text) })
        )
      case 'call':
        return this.#stop() + this.#block('tool_use', toolUse(part))
      case 'arguments':
        return part.text === ''
          ? ''
          : this.#delta({ type: 'input_json_delta', partial_json: this.#texts.of(part.text) })
      case 'finish':
        this.#finish = part.reason
        return ''
      case 'usage':
        this.#usage = part.usage
        return ''
    }
  }

  /** The counts of tokens come with the end: a count here would pass for that of a stream whose provider reports none. */
  #start(): string {
    if (this.#begun) return ''
    this.#begun = true
    const { id, model } = this.#facts
    const empty = { content: [], stop_reason: null, stop_sequence: null, usage: { input_tokens: 0 } }
    return eventOf({ type: 'message_start', message: { id, type: 'message', role: 'assistant', model, ...empty } })
  }

  #block(kind: BlockKind, block: JsonObject): string {
    if (this.#open === kind) return ''
    const stop = this.#stop()
    this.#open = kind
    this.#index++
    return stop + eventOf({ type: 'content_block_start', index: this.#index, content_block: block })
  }

  #stop(): string {
    if (this.#open === null) return ''
    this.#open = null
    return eventOf({ type: 'content_block_stop', index: this.#index })
  }

  #delta(delta: JsonObject): string {
    return eventOf({ type: 'content_block_delta', index: this.#index, delta })
  }
}

function eventOf(event: JsonObject): string {
  return `event: ${String(event.type)}\ndata: ${JSON.stringify(event)}\n\n`
}

/** `input_tokens` does not include tokens read from or written to a cache. Without a report the object has no counts. */
function usageOf(usage: Usage | null): JsonObject {
  if (usage === null) return {}
  const { prompt, completion, cachedRead, cachedWrite } = usage
  return {
    input_tokens: Math.max(0, prompt - cachedRead - cachedWrite),
    output_tokens: completion,
    cache_read_input_tokens: cachedRead,
    cache_creation_input_tokens: cachedWrite,
  }
}

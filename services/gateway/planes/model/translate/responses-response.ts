import type { JsonObject } from '@plat/core'
import type { Usage } from '../../../call/index.ts'
import { InvalidResponseError } from '../invalid.ts'
import type { LongTexts } from './long-texts.ts'
import {
  type FinishReason,
  type PartWriter,
  type ResponseFacts,
  type ResponsePart,
  summaryOf,
  type WriterContext,
} from './response-parts.ts'

/** Most characters of a streamed response that its last event repeats, and of the beginnings of its items. */
const MAX_CHARS = 16 * 1024 * 1024

/** A whole `response` of OpenAI's API. Throws `InvalidResponseError`. */
export function responseOf(parts: readonly ResponsePart[], { facts, texts }: WriterContext): JsonObject {
  const { content, finish, usage } = summaryOf(parts)
  const output = content.map((one, at) =>
    itemOf(one, { id: itemId(facts, at), text: texts.of(one.kind === 'call' ? one.json : one.text) }),
  )
  return responseWith(facts, { output: texts.list(output), finish, usage })
}

const STATUSES: Readonly<Record<FinishReason, string | null>> = {
  stop: null,
  tool_calls: null,
  length: 'max_output_tokens',
  content_filter: 'content_filter',
}

/** `finish`: null while the response is generated. */
function responseWith(
  { id, created, model }: ResponseFacts,
  { output, finish, usage }: { output: unknown; finish: FinishReason | null; usage: Usage | null },
): JsonObject {
  const reason = finish === null ? null : STATUSES[finish]
  return {
    id,
    object: 'response',
    created_at: created,
    status: finish === null ? 'in_progress' : reason === null ? 'completed' : 'incomplete',
    error: null,
    incomplete_details: reason === null ? null : { reason },
    instructions: null,
    metadata: {},
    model,
    output,
    parallel_tool_calls: true,
    tool_choice: 'auto',
    tools: [],
    temperature: null,
    top_p: null,
    usage: usage === null ? null : usageOf(usage),
  }
}

function itemId({ id }: ResponseFacts, at: number): string {
  return `${id.replace(/^resp_/, 'item_')}_${at}`
}

/** An item without its text. */
type ItemStart = Extract<ResponsePart, { kind: 'call' }> | { readonly kind: 'text' | 'reasoning' }

/** `text`: the text or the arguments; null: they follow. */
function itemOf(start: ItemStart, { id, text }: { readonly id: string; readonly text: unknown }): JsonObject {
  const status = text === null ? 'in_progress' : 'completed'
  switch (start.kind) {
    case 'text':
      return { id, type: 'message', status, role: 'assistant', content: text === null ? [] : [textPart(text)] }
    case 'reasoning':
      return { id, type: 'reasoning', summary: text === null ? [] : [summaryPart(text)] }
    case 'call': {
      const { signature, name, id: call_id } = start
      const extra = signature === null ? null : { extra_content: { google: { thought_signature: signature } } }
      return { id, type: 'function_call', status, call_id, name, arguments: text ?? '', ...extra }
    }
  }
}

function textPart(text: unknown): JsonObject {
  return { type: 'output_text', text, annotations: [], logprobs: [] }
}

function summaryPart(text: unknown): JsonObject {
  return { type: 'summary_text', text }
}

/** Writes the events of a streamed response. */
export class ResponseStream implements PartWriter {
  readonly #facts: ResponseFacts
  readonly #texts: LongTexts
  readonly #items: JsonObject[] = []
  #sequence = 0
  #begun = false
  #open: OpenItem | null = null
  #chars = 0
  #finish: FinishReason | null = null
  #usage: Usage | null = null

  constructor({ facts, texts }: WriterContext) {
    this.#facts = facts
    this.#texts = texts
  }

  /** Throws `InvalidResponseError` for a response that is too long. */
  event(part: ResponsePart): string {
    return this.#start() + this.#part(part)
  }

  end(): string {
    if (this.#finish === null) return ''
    const done = this.#start() + this.#close()
    const output = this.#texts.list(this.#items)
    const response = responseWith(this.#facts, { output, finish: this.#finish, usage: this.#usage })
    return done + this.#event(`response.${String(response.status)}`, { response })
  }

  #start(): string {
    if (this.#begun) return ''
    this.#begun = true
    const response = responseWith(this.#facts, { output: [], finish: null, usage: null })
    return this.#event('response.created', { response }) + this.#event('response.in_progress', { response })
  }

  #part(part: ResponsePart): string {
    switch (part.kind) {
      case 'text':
      case 'reasoning':
        return this.#opened(part) + this.#more(part.text)
      case 'call':
        return this.#close() + this.#opened(part)
      case 'arguments':
        return this.#open === null || part.text === '' ? '' : this.#more(part.text)
      case 'finish':
        this.#finish = part.reason
        return ''
      case 'usage':
        this.#usage = part.usage
        return ''
    }
  }

  #opened(start: ItemStart): string {
    if (this.#open !== null && this.#open.start.kind === start.kind && start.kind !== 'call') return ''
    const closed = this.#close()
    const output_index = this.#items.length
    const id = itemId(this.#facts, output_index)
    this.#open = { start, id, output_index, pieces: [] }
    const added = this.#event('response.output_item.added', { output_index, item: itemOf(start, { id, text: null }) })
    this.#count(added.length)
    const part = NAMES[start.kind].part
    return (
      closed +
      added +
      (part === null ? '' : this.#event(`${part}.added`, { ...this.#place(), part: partOf(start, '') }))
    )
  }

  #more(delta: string): string {
    if (this.#open === null) return ''
    this.#count(delta.length)
    this.#open.pieces.push(delta)
    return this.#event(`${NAMES[this.#open.start.kind].text}.delta`, {
      ...this.#place(),
      delta: this.#texts.of(delta),
    })
  }

  #count(chars: number): void {
    this.#chars += chars
    if (this.#chars > MAX_CHARS) throw new InvalidResponseError('a response that is too long')
  }

  #close(): string {
    const open = this.#open
    if (open === null) return ''
    const { start, id, output_index, pieces } = open
    const joined = pieces.join('')
    const text = this.#texts.of(start.kind === 'call' ? joined || '{}' : joined)
    const { part, text: name } = NAMES[start.kind]
    const whole = start.kind === 'call' ? { name: start.name, arguments: text } : { text }
    const item = itemOf(start, { id, text })
    const done =
      this.#event(`${name}.done`, { ...this.#place(), ...whole }) +
      (part === null ? '' : this.#event(`${part}.done`, { ...this.#place(), part: partOf(start, text) })) +
      this.#event('response.output_item.done', { output_index, item })
    this.#items.push(item)
    this.#open = null
    return done
  }

  /** Members that name the text of an event. */
  #place(): JsonObject {
    if (this.#open === null) return {}
    const { id, output_index, start } = this.#open
    return { item_id: id, output_index, ...NAMES[start.kind].index }
  }

  #event(type: string, members: JsonObject): string {
    const event = { type, sequence_number: this.#sequence++, ...members }
    return `event: ${type}\ndata: ${JSON.stringify(event)}\n\n`
  }
}

/** An item of which more may come. */
interface OpenItem {
  readonly start: ItemStart
  readonly id: string
  readonly output_index: number
  readonly pieces: string[]
}

/** Names of the events of an item's text and of the part that holds it, and the index of that part. */
const NAMES = {
  text: { text: 'response.output_text', part: 'response.content_part', index: { content_index: 0 } },
  reasoning: {
    text: 'response.reasoning_summary_text',
    part: 'response.reasoning_summary_part',
    index: { summary_index: 0 },
  },
  call: { text: 'response.function_call_arguments', part: null, index: {} },
} as const

function partOf({ kind }: ItemStart, text: unknown): JsonObject {
  return kind === 'reasoning' ? summaryPart(text) : textPart(text)
}

function usageOf({ prompt, completion, cachedRead, reasoning }: Usage): JsonObject {
  return {
    input_tokens: prompt,
    input_tokens_details: { cached_tokens: cachedRead },
    output_tokens: completion,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: prompt + completion,
  }
}

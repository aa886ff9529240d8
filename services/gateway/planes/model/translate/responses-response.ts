import type { JsonObject } from '@plat/core'
import type { Usage } from '../../../call/index.ts'
import { InvalidResponseError } from '../invalid.ts'
import {
  type ContentPiece,
  type FinishReason,
  type PartWriter,
  type ResponseFacts,
  type ResponsePart,
  summaryOf,
} from './response-parts.ts'

/** Most characters of a streamed response that its last event repeats. */
const MAX_CHARS = 16 * 1024 * 1024

/** A whole `response` of OpenAI's API. Throws `InvalidResponseError`. */
export function responseOf(parts: readonly ResponsePart[], facts: ResponseFacts): JsonObject {
  const { content, finish, usage } = summaryOf(parts)
  return responseWith(facts, { output: content.map((one, at) => itemOf(one, itemId(facts, at))), finish, usage })
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
  { output, finish, usage }: { output: readonly JsonObject[]; finish: FinishReason | null; usage: Usage | null },
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

function itemOf(piece: ContentPiece, id: string, status: 'in_progress' | 'completed' = 'completed'): JsonObject {
  switch (piece.kind) {
    case 'text':
      return {
        id,
        type: 'message',
        status,
        role: 'assistant',
        content: status === 'completed' ? [textPart(piece.text)] : [],
      }
    case 'reasoning':
      return { id, type: 'reasoning', summary: status === 'completed' ? [summaryPart(piece.text)] : [] }
    case 'call': {
      const { signature, name, json } = piece
      const extra = signature === null ? null : { extra_content: { google: { thought_signature: signature } } }
      return { id, type: 'function_call', status, call_id: piece.id, name, arguments: json, ...extra }
    }
  }
}

function textPart(text: string): JsonObject {
  return { type: 'output_text', text, annotations: [], logprobs: [] }
}

function summaryPart(text: string): JsonObject {
  return { type: 'summary_text', text }
}

/** Writes the events of a streamed response. */
export class ResponseStream implements PartWriter {
  readonly #facts: ResponseFacts
  readonly #items: JsonObject[] = []
  #sequence = 0
  #begun = false
  #open: OpenItem | null = null
  #chars = 0
  #finish: FinishReason | null = null
  #usage: Usage | null = null

  constructor(facts: ResponseFacts) {
    this.#facts = facts
  }

  /** Throws `InvalidResponseError` for a response that is too long. */
  events(parts: readonly ResponsePart[]): string {
    return parts.map((part) => this.#start() + this.#part(part)).join('')
  }

  end(): string {
    if (this.#finish === null) return ''
    const done = this.#start() + this.#close()
    const response = responseWith(this.#facts, { output: this.#items, finish: this.#finish, usage: this.#usage })
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
        return this.#opened({ kind: part.kind, text: '' }) + this.#more(part.text)
      case 'call':
        return this.#close() + this.#opened({ ...part, json: '' })
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

  #opened(piece: ContentPiece): string {
    if (this.#open !== null && this.#open.piece.kind === piece.kind && piece.kind !== 'call') return ''
    const closed = this.#close()
    const output_index = this.#items.length
    const id = itemId(this.#facts, output_index)
    this.#open = { piece, id, output_index, pieces: [] }
    const added = this.#event('response.output_item.added', { output_index, item: itemOf(piece, id, 'in_progress') })
    const part = NAMES[piece.kind].part
    return (
      closed +
      added +
      (part === null ? '' : this.#event(`${part}.added`, { ...this.#place(), part: partOf(piece, '') }))
    )
  }

  #more(delta: string): string {
    if (this.#open === null) return ''
    this.#chars += delta.length
    if (this.#chars > MAX_CHARS) throw new InvalidResponseError('a response that is too long')
    this.#open.pieces.push(delta)
    return this.#event(`${NAMES[this.#open.piece.kind].text}.delta`, { ...this.#place(), delta })
  }

  #close(): string {
    const open = this.#open
    if (open === null) return ''
    const { piece, id, output_index, pieces } = open
    const text = pieces.join('')
    const { part, text: name } = NAMES[piece.kind]
    const whole = piece.kind === 'call' ? { name: piece.name, arguments: text || '{}' } : { text }
    const item = itemOf(piece.kind === 'call' ? { ...piece, json: text || '{}' } : { ...piece, text }, id)
    const done =
      this.#event(`${name}.done`, { ...this.#place(), ...whole }) +
      (part === null ? '' : this.#event(`${part}.done`, { ...this.#place(), part: partOf(piece, text) })) +
      this.#event('response.output_item.done', { output_index, item })
    this.#items.push(item)
    this.#open = null
    return done
  }

  /** Members that name the text of an event. */
  #place(): JsonObject {
    if (this.#open === null) return {}
    const { id, output_index, piece } = this.#open
    return { item_id: id, output_index, ...NAMES[piece.kind].index }
  }

  #event(type: string, members: JsonObject): string {
    const event = { type, sequence_number: this.#sequence++, ...members }
    return `event: ${type}\ndata: ${JSON.stringify(event)}\n\n`
  }
}

/** An item of which more may come. */
interface OpenItem {
  readonly piece: ContentPiece
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

function partOf({ kind }: ContentPiece, text: string): JsonObject {
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

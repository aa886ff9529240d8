import type { JsonObject } from '@plat/core'
import type { Usage } from '../../../call/index.ts'
import { NestedJson } from '../../wire/nested.ts'
import { InvalidResponseError } from '../invalid.ts'
import type { LongTexts } from './long-texts.ts'
import {
  argumentsIn,
  type ContentPiece,
  type FinishReason,
  type PartWriter,
  type ResponseFacts,
  type ResponsePart,
  summaryOf,
  type WriterContext,
} from './response-parts.ts'

/** Most characters in the arguments of a stream: they are stored until their call is complete, and `NestedJson` parses no more. */
const MAX_ARGUMENT_CHARS = 2 * 1024 * 1024

const ENDS: Readonly<Record<FinishReason, string>> = {
  stop: 'STOP',
  length: 'MAX_TOKENS',
  tool_calls: 'STOP',
  content_filter: 'SAFETY',
}

/** A whole response of Google's `generateContent`. Throws `InvalidResponseError`. */
export function contentOf(parts: readonly ResponsePart[], { facts, texts }: WriterContext): JsonObject {
  const { content, finish, usage } = summaryOf(parts)
  const nested = new NestedJson()
  return responseOf(facts, { parts: content.map((piece) => partOf(piece, nested, texts)), finish, usage })
}

function partOf(piece: ContentPiece, nested: NestedJson, texts: LongTexts): JsonObject {
  if (piece.kind !== 'call') return { text: texts.of(piece.text), ...(piece.kind === 'reasoning' && { thought: true }) }
  const { id, name, json, signature } = piece
  return {
    functionCall: { id, name, args: argumentsIn(json, nested) },
    ...(signature !== null && { thoughtSignature: signature }),
  }
}

/** `finish`: null while more follows. */
function responseOf(
  { id, model }: ResponseFacts,
  { parts, finish, usage }: { parts: readonly JsonObject[]; finish: FinishReason | null; usage: Usage | null },
): JsonObject {
  const end = finish === null ? null : { finishReason: ENDS[finish] }
  return {
    candidates: [{ content: { role: 'model', parts }, index: 0, ...end }],
    ...(usage !== null && { usageMetadata: usageOf(usage) }),
    modelVersion: model,
    responseId: id,
  }
}

function usageOf({ prompt, completion, cachedRead, reasoning }: Usage): JsonObject {
  return {
    promptTokenCount: prompt,
    candidatesTokenCount: Math.max(0, completion - reasoning),
    totalTokenCount: prompt + completion,
    ...(cachedRead > 0 && { cachedContentTokenCount: cachedRead }),
    ...(reasoning > 0 && { thoughtsTokenCount: reasoning }),
  }
}

/** Writes the chunks of a streamed response. A call of a tool is sent when its arguments are complete. */
export class ContentStream implements PartWriter {
  readonly #facts: ResponseFacts
  readonly #texts: LongTexts
  readonly #nested = new NestedJson()
  #argumentChars = 0
  #call: { readonly part: Extract<ResponsePart, { kind: 'call' }>; readonly pieces: string[] } | null = null
  #finish: FinishReason | null = null
  #usage: Usage | null = null

  constructor({ facts, texts }: WriterContext) {
    this.#facts = facts
    this.#texts = texts
  }

  end(): string {
    if (this.#finish === null) return ''
    const last = responseOf(this.#facts, { parts: [], finish: this.#finish, usage: this.#usage })
    return this.#called() + eventOf(last)
  }

  /** Throws `InvalidResponseError` for arguments that are too long, or not an object. */
  event(part: ResponsePart): string {
    switch (part.kind) {
      case 'text':
      case 'reasoning':
        return this.#called() + this.#chunk(part)
      case 'call': {
        const before = this.#called()
        this.#call = { part, pieces: [] }
        return before
      }
      case 'arguments':
        this.#call?.pieces.push(part.text)
        this.#argumentChars += part.text.length
        if (this.#argumentChars > MAX_ARGUMENT_CHARS) throw new InvalidResponseError('tool calls that are too long')
        return ''
      case 'finish':
        this.#finish = part.reason
        return ''
      case 'usage':
        this.#usage = part.usage
        return ''
    }
  }

  #called(): string {
    if (this.#call === null) return ''
    const { part, pieces } = this.#call
    this.#call = null
    return this.#chunk({ ...part, json: pieces.join('') || '{}' })
  }

  #chunk(piece: ContentPiece): string {
    const parts = [partOf(piece, this.#nested, this.#texts)]
    return eventOf(responseOf(this.#facts, { parts, finish: null, usage: null }))
  }
}

function eventOf(value: JsonObject): string {
  return `data: ${JSON.stringify(value)}\n\n`
}

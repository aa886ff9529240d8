import { isObject, type JsonObject, member, type Steps } from '@plat/core'
import { type Denial, isDenial, type RedactionScope, type Redactor, type TextRedactor } from '../../../call/index.ts'

/** A piece of a text that an event carries. */
interface Piece {
  /** Which text it belongs to. */
  readonly key: string
  readonly text: string
  readonly isJson: boolean
  /** The same event with another text. */
  with(text: string): JsonObject
}

/** How the events of one API carry texts. */
interface Carrier {
  /** Null: the event carries no piece, and is whole in itself. */
  piece(event: JsonObject): Piece | null
  /** The texts that end with an event, by what their keys begin with; null: none does. */
  ends(event: JsonObject): string | null
}

/** Members of a delta of Anthropic's API that hold text; a signature would not be one any more if it were changed. */
const BLOCK_TEXTS = ['text', 'partial_json', 'thinking'] as const

/** Anthropic's `messages`: deltas of content blocks, which stand under their number until they stop. */
const blocks: Carrier = {
  piece(event) {
    const { delta } = event
    if (event.type !== 'content_block_delta' || !isObject(delta)) return null
    const name = BLOCK_TEXTS.find((one) => typeof delta[one] === 'string')
    if (name === undefined) return null
    return {
      key: `${event.index}/${name}`,
      text: String(delta[name]),
      isJson: name === 'partial_json',
      with: (text) => ({ ...event, delta: { ...delta, [name]: text } }),
    }
  },
  ends: ({ type, index }) => (type === 'content_block_stop' ? `${index}/` : null),
}

const DELTA = '.delta'
const DONE = '.done'

/** OpenAI's `responses`: events named `<text>.delta`, until `<text>.done` has the whole text. */
const items: Carrier = {
  piece(event) {
    const { type, delta } = event
    if (typeof type !== 'string' || !type.endsWith(DELTA) || typeof delta !== 'string') return null
    return {
      key: itemKey(event, type.slice(0, -DELTA.length)),
      text: delta,
      isJson: type.includes('arguments'),
      with: (text) => ({ ...event, delta: text }),
    }
  },
  ends(event) {
    const { type } = event
    return typeof type === 'string' && type.endsWith(DONE) ? itemKey(event, type.slice(0, -DONE.length)) : null
  },
}

function itemKey({ output_index: output, content_index: content, summary_index: summary }: JsonObject, name: string) {
  return `${name}/${String(output)}/${String(content)}/${String(summary)}/`
}

const CARRIERS: ReadonlyMap<string, Carrier> = new Map([
  ['messages', blocks],
  ['responses', items],
])

/** Members of an event that are not redacted: names and numbers of the protocol. */
const EVENT: RedactionScope = { except: [['type'], ['response', 'id'], ['message', 'id'], ['item_id']] }

/** Texts of one answer that may be open at a time. */
const MAX_TEXTS = 1024

/** An event as it goes on, and what has to go before it. */
export interface RedactedEvent {
  readonly before: readonly JsonObject[]
  /** Null: as it came. */
  readonly json: Uint8Array | null
}

interface OpenText {
  readonly pieces: TextRedactor
  last: Piece
}

/**
 * Redacts the texts of a stream with named events. Text that is held back is sent before the event that ends its text. All other events
 * are redacted as a whole.
 */
export class EventTexts {
  readonly #redactor: Redactor
  readonly #carrier: Carrier
  readonly #texts = new Map<string, OpenText>()

  private constructor(redactor: Redactor, carrier: Carrier) {
    this.#redactor = redactor
    this.#carrier = carrier
  }

  /** Returns null if the stream format of this endpoint is unknown. */
  static of(method: string, redactor: Redactor): EventTexts | null {
    const carrier = CARRIERS.get(method)
    return carrier === undefined ? null : new EventTexts(redactor, carrier)
  }

  *take(event: JsonObject, json: Uint8Array): Steps<RedactedEvent | Denial> {
    const piece = this.#carrier.piece(event)
    if (piece !== null) return yield* this.#piece(piece)
    const ended = this.#carrier.ends(event)
    const before = ended === null ? [] : this.#flush((key) => key.startsWith(ended))
    if (isDenial(before)) return before
    const redacted = yield* this.#redactor.steps(json, EVENT)
    if (isDenial(redacted)) return redacted
    return { before, json: redacted === json ? null : redacted }
  }

  /** Events with what is held back of all texts, since nothing follows. */
  end(): readonly JsonObject[] | Denial {
    return this.#flush(() => true)
  }

  *#piece(piece: Piece): Steps<RedactedEvent | Denial> {
    const before = this.#texts.size >= MAX_TEXTS ? this.end() : []
    if (isDenial(before)) return before
    const open = this.#texts.get(piece.key) ?? this.#opened(piece)
    open.last = piece
    const redacted = yield* open.pieces.push(piece.text)
    if (isDenial(redacted)) return redacted
    return { before, json: redacted === piece.text ? null : Buffer.from(JSON.stringify(piece.with(redacted))) }
  }

  #opened(piece: Piece): OpenText {
    const open = { pieces: this.#redactor.pieces(piece.isJson), last: piece }
    this.#texts.set(piece.key, open)
    return open
  }

  #flush(isEnded: (key: string) => boolean): readonly JsonObject[] | Denial {
    const rests: JsonObject[] = []
    for (const [key, { pieces, last }] of this.#texts) {
      if (!isEnded(key)) continue
      this.#texts.delete(key)
      const rest = pieces.end()
      if (isDenial(rest)) return rest
      if (rest !== '') rests.push(last.with(rest))
    }
    return rests
  }
}

/** The name of an event of these APIs is its type. */
export function nameOf(event: JsonObject): string {
  const type = member(event, 'type')
  return typeof type === 'string' ? type : 'message'
}

import { type Denial, isDenial, type Pieces, type Redactor } from '../../../call/index.ts'
import { isObject, type JsonObject, member } from '../../wire/json.ts'

/** A chunk as it goes on, and what has to go before it. */
export interface RedactedChunk {
  readonly before: readonly JsonObject[]
  readonly chunk: JsonObject
}

/** Members of a choice that hold no text of the model: they come once, whole. */
const PLAIN: ReadonlySet<string> = new Set([
  'role',
  'type',
  'id',
  'name',
  'object',
  'finish_reason',
  'index',
  'logprobs',
  'thought_signature',
])
/** Members whose pieces are JSON. */
const JSON_MEMBERS: ReadonlySet<string> = new Set(['arguments'])
/** Texts of one answer that may be open at a time: choices with their contents and tool calls. */
const MAX_TEXTS = 1024
/** What a chunk says of its answer: held-back text goes on under the same. */
const SAME = ['id', 'object', 'created', 'model', 'system_fingerprint'] as const

/** The way from a choice to one of its texts; numbers are the `index` of an element, or its place. */
type TextPath = readonly (string | number)[]

interface OpenText {
  readonly choice: number
  readonly way: TextPath
  readonly pieces: Pieces
}

/**
 * The texts of a streamed completion: each member of a choice that comes in pieces is one text, by whatever name. A piece goes on as
 * its text allows; what is held back when a choice ends goes on before its end.
 */
export class ChunkTexts {
  readonly #redactor: Redactor
  readonly #texts = new Map<string, OpenText>()
  #same: JsonObject = {}
  #isChanged = false
  #denial: Denial | null = null

  constructor(redactor: Redactor) {
    this.#redactor = redactor
  }

  /** Null: the chunk goes on as it came. */
  take(chunk: JsonObject): RedactedChunk | Denial | null {
    const { choices } = chunk
    if (!Array.isArray(choices) || choices.length === 0) return null
    this.#same = Object.fromEntries(SAME.flatMap((name) => (chunk[name] === undefined ? [] : [[name, chunk[name]]])))
    this.#isChanged = false
    const before: JsonObject[] = []
    const told = choices.map((choice: unknown, place) => this.#choice(choice, place, before))
    if (this.#denial !== null) return this.#denial
    return this.#isChanged || before.length > 0 ? { before, chunk: { ...chunk, choices: told } } : null
  }

  /** Chunks with what is held back of all choices, since nothing follows. */
  end(): readonly JsonObject[] | Denial {
    const held = [...this.#texts.values()].flatMap((text) => this.#rest(text))
    this.#texts.clear()
    return this.#denial ?? held
  }

  #choice(choice: unknown, place: number, before: JsonObject[]): unknown {
    if (!isObject(choice)) return choice
    const index = typeof choice.index === 'number' ? choice.index : place
    const isLast = typeof choice.finish_reason === 'string'
    const unchanged = this.#isChanged
    this.#isChanged = false
    const told = this.#member(choice, { choice: index, way: [], isLast })
    if (isLast) before.push(...this.#flush(index))
    const isTold = this.#isChanged && isObject(told) && isObject(told.logprobs)
    this.#isChanged ||= unchanged
    return isTold ? { ...told, logprobs: null } : told
  }

  #member(value: unknown, at: { readonly choice: number; readonly way: TextPath; readonly isLast: boolean }): unknown {
    if (typeof value === 'string') return at.way.length === 0 ? value : this.#text(value, at)
    if (Array.isArray(value)) {
      return value.map((one: unknown, place) => {
        const index = member(one, 'index')
        return this.#member(one, { ...at, way: [...at.way, typeof index === 'number' ? index : place] })
      })
    }
    if (!isObject(value) || JSON.isRawJSON(value)) return value
    const told: Record<string, unknown> = {}
    for (const [name, one] of Object.entries(value)) {
      told[name] = PLAIN.has(name) ? one : this.#member(one, { ...at, way: [...at.way, name] })
    }
    return told
  }

  #text(piece: string, { choice, way, isLast }: { choice: number; way: TextPath; isLast: boolean }): string {
    const key = JSON.stringify([choice, ...way])
    const text = this.#texts.get(key) ?? this.#opened(key, choice, way)
    let told = this.#checked(text.pieces.push(piece))
    if (isLast || this.#texts.size > MAX_TEXTS) {
      told += this.#checked(text.pieces.end())
      this.#texts.delete(key)
    }
    if (told !== piece) this.#isChanged = true
    return told
  }

  #opened(key: string, choice: number, way: TextPath): OpenText {
    const isJson = typeof way.at(-1) === 'string' && JSON_MEMBERS.has(String(way.at(-1)))
    const text = { choice, way, pieces: this.#redactor.pieces(isJson) }
    this.#texts.set(key, text)
    return text
  }

  #flush(choice: number): readonly JsonObject[] {
    const ended = [...this.#texts].filter(([, text]) => text.choice === choice)
    for (const [key] of ended) this.#texts.delete(key)
    return ended.flatMap(([, text]) => this.#rest(text))
  }

  /** A chunk with what is held back of a text; none where that is nothing. */
  #rest({ choice, way, pieces }: OpenText): readonly JsonObject[] {
    const rest = this.#checked(pieces.end())
    if (rest === '') return []
    const held = leadingTo(rest, way)
    return [{ ...this.#same, choices: [{ index: choice, ...(isObject(held) ? held : {}), finish_reason: null }] }]
  }

  #checked(told: string | Denial): string {
    if (!isDenial(told)) return told
    this.#denial ??= told
    return ''
  }
}

/** A value at the end of a way, in the objects and lists that lead to it. */
function leadingTo(text: string, way: TextPath): unknown {
  let held: unknown = text
  for (const step of way.toReversed()) {
    if (typeof step === 'string') held = { [step]: held }
    else held = [isObject(held) ? { index: step, ...held } : held]
  }
  return held
}

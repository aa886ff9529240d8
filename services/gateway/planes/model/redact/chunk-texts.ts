import { isObject, type JsonObject, member, type Steps } from '@plat/core'
import { type Denial, isDenial, type Redactor, type TextRedactor } from '../../../call/index.ts'

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
/** Elements of a list that are redacted in one step. */
const ELEMENTS_OF_STEP = 256
/** Members whose pieces are JSON. */
const JSON_MEMBERS: ReadonlySet<string> = new Set(['arguments'])
/** Texts of one answer that may be open at a time: choices with their contents and tool calls. */
const MAX_TEXTS = 1024
/** Members of a chunk other than its choices, which are repeated in chunks with held-back text. */
const SAME = ['id', 'object', 'created', 'model', 'system_fingerprint'] as const

/** An element of the way from a choice to one of its texts; numbers are the `index` of an element, or its place. */
type Step = string | number

/** A choice, or a container in it, with open texts. A text is found by one step from its container, however deep that is. */
class Place {
  readonly step: Step
  readonly parent: Place | null
  readonly places = new Map<Step, Place>()
  readonly texts = new Map<Step, OpenText>()

  constructor(step: Step, parent: Place | null) {
    this.step = step
    this.parent = parent
  }

  get isEmpty(): boolean {
    return this.texts.size === 0 && this.places.size === 0
  }
}

interface OpenText {
  /** Null: it is not kept beyond its first piece. */
  readonly place: Place | null
  readonly step: Step
  readonly pieces: TextRedactor
}

interface OpenChoice {
  readonly root: Place
  /** In the order in which they began. */
  readonly texts: Set<OpenText>
}

/** Where a container is, that of a choice has no parent. Its place is null until a text in it is opened. */
interface At {
  readonly parent: At | null
  readonly step: Step
  place: Place | null
}

/**
 * The texts of a streamed completion: each member of a choice that comes in pieces is one text, by whatever name. A piece goes on as
 * its text allows; what is held back when a choice ends goes on before its end.
 */
export class ChunkTexts {
  readonly #redactor: Redactor
  /** By the index of the choice, in the order in which they began. */
  readonly #choices = new Map<number, OpenChoice>()
  #open = 0
  #same: JsonObject = {}
  #isChanged = false
  /** The choice that is read ends with this chunk. */
  #isLast = false
  #index = 0
  #denial: Denial | null = null

  constructor(redactor: Redactor) {
    this.#redactor = redactor
  }

  /** Null: the chunk goes on as it came. */
  *take(chunk: JsonObject): Steps<RedactedChunk | Denial | null> {
    const { choices } = chunk
    if (!Array.isArray(choices) || choices.length === 0) return null
    this.#same = Object.fromEntries(SAME.flatMap((name) => (chunk[name] === undefined ? [] : [[name, chunk[name]]])))
    this.#isChanged = false
    const before: JsonObject[] = []
    const redacted: unknown[] = []
    for (const [place, choice] of choices.entries()) redacted.push(yield* this.#choice(choice, place, before))
    if (this.#denial !== null) return this.#denial
    return this.#isChanged || before.length > 0 ? { before, chunk: { ...chunk, choices: redacted } } : null
  }

  /** Chunks with what is held back of all choices, since nothing follows. */
  end(): readonly JsonObject[] | Denial {
    const held: JsonObject[] = []
    for (const choice of [...this.#choices.keys()]) this.#flush(choice, held)
    return this.#denial ?? held
  }

  *#choice(choice: unknown, at: number, before: JsonObject[]): Steps<unknown> {
    if (!isObject(choice)) return choice
    const index = typeof choice.index === 'number' ? choice.index : at
    this.#isLast = typeof choice.finish_reason === 'string'
    const unchanged = this.#isChanged
    this.#isChanged = false
    this.#index = index
    const place = this.#choices.get(index)?.root ?? null
    const redacted = yield* this.#members(choice, { parent: null, step: index, place })
    if (this.#isLast) this.#flush(index, before)
    const isTold = this.#isChanged && isObject(redacted.logprobs)
    this.#isChanged ||= unchanged
    return isTold ? { ...redacted, logprobs: null } : redacted
  }

  *#value(value: unknown, step: Step, parent: At): Steps<unknown> {
    if (typeof value === 'string') return yield* this.#text(value, step, parent)
    if (typeof value !== 'object' || value === null || JSON.isRawJSON(value)) return value
    const at: At = { parent, step, place: parent.place?.places.get(step) ?? null }
    if (Array.isArray(value)) return yield* this.#elements(value, at)
    return isObject(value) ? yield* this.#members(value, at) : value
  }

  /** The list itself where nothing in it is changed. */
  *#elements(list: readonly unknown[], at: At): Steps<readonly unknown[]> {
    let redacted: unknown[] | null = null
    for (let place = 0; place < list.length; place++) {
      if (place % ELEMENTS_OF_STEP === ELEMENTS_OF_STEP - 1) yield
      const one = list[place]
      if (isWithoutText(one)) continue
      const index = typeof one === 'object' ? member(one, 'index') : undefined
      const next = yield* this.#value(one, typeof index === 'number' ? index : place, at)
      if (next === one) continue
      redacted ??= [...list]
      redacted[place] = next
    }
    return redacted ?? list
  }

  *#members(object: JsonObject, at: At): Steps<JsonObject> {
    let redacted: Record<string, unknown> | null = null
    for (const name of Object.keys(object)) {
      const one = object[name]
      if (PLAIN.has(name) || isWithoutText(one)) continue
      const next = yield* this.#value(one, name, at)
      if (next === one) continue
      redacted ??= { ...object }
      Object.defineProperty(redacted, name, { value: next })
    }
    return redacted ?? object
  }

  *#text(piece: string, step: Step, at: At): Steps<string> {
    const text = at.place?.texts.get(step) ?? this.#opened(step, at)
    let redacted = this.#checked(yield* text.pieces.push(piece))
    if (this.#isLast || text.place === null) redacted += this.#checked(text.pieces.end())
    if (this.#isLast && text.place !== null) this.#close(text, text.place)
    if (redacted !== piece) this.#isChanged = true
    return redacted
  }

  #opened(step: Step, at: At): OpenText {
    const pieces = this.#redactor.pieces(typeof step === 'string' && JSON_MEMBERS.has(step))
    // It ends with this piece: nothing of it has to be found again.
    if (this.#isLast || this.#open >= MAX_TEXTS) return { place: null, step, pieces }
    const place = this.#placeOf(at)
    const text = { place, step, pieces }
    place.texts.set(step, text)
    this.#choices.get(this.#index)?.texts.add(text)
    this.#open++
    return text
  }

  #placeOf(at: At): Place {
    if (at.place !== null && this.#isKept(at.place)) return at.place
    const parent = at.parent === null ? null : this.#placeOf(at.parent)
    const place = new Place(at.step, parent)
    if (parent === null) this.#choices.set(this.#index, { root: place, texts: new Set() })
    else parent.places.set(at.step, place)
    at.place = place
    return place
  }

  /** False once its last text was closed. */
  #isKept(place: Place): boolean {
    const { parent, step } = place
    return parent === null ? this.#choices.get(this.#index)?.root === place : parent.places.get(step) === place
  }

  #close(text: OpenText, container: Place): void {
    container.texts.delete(text.step)
    this.#choices.get(this.#index)?.texts.delete(text)
    this.#open--
    let place = container
    while (place.isEmpty && place.parent !== null) {
      place.parent.places.delete(place.step)
      place = place.parent
    }
    if (place.isEmpty) this.#choices.delete(this.#index)
  }

  /** Adds chunks with what is held back of the texts of a choice, which ends. */
  #flush(index: number, held: JsonObject[]): void {
    const choice = this.#choices.get(index)
    if (choice === undefined) return
    this.#choices.delete(index)
    this.#open -= choice.texts.size
    for (const text of choice.texts) this.#rest(index, text, held)
  }

  /** Adds a chunk with what is held back of a text; none where that is nothing. */
  #rest(index: number, { place, step, pieces }: OpenText, held: JsonObject[]): void {
    const rest = this.#checked(pieces.end())
    if (rest === '') return
    const value = leadingTo(rest, [...wayTo(place), step])
    held.push({ ...this.#same, choices: [{ index, ...(isObject(value) ? value : {}), finish_reason: null }] })
  }

  #checked(redacted: string | Denial): string {
    if (!isDenial(redacted)) return redacted
    this.#denial ??= redacted
    return ''
  }
}

/** Whether a value is neither a text nor a container. */
function isWithoutText(value: unknown): boolean {
  return typeof value !== 'string' && (typeof value !== 'object' || value === null)
}

/** The steps from the choice to a place in it. */
function wayTo(place: Place | null): readonly Step[] {
  const way: Step[] = []
  for (let at = place; at !== null && at.parent !== null; at = at.parent) way.push(at.step)
  return way.reverse()
}

/** A value at the end of a way, in the objects and lists that lead to it. */
function leadingTo(text: string, way: readonly Step[]): unknown {
  let held: unknown = text
  for (const step of way.toReversed()) {
    if (typeof step === 'string') held = { [step]: held }
    else held = [isObject(held) ? { index: step, ...held } : held]
  }
  return held
}

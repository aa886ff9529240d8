import { isObject, type JsonObject, member, parseLossless, type Steps } from '@plat/core'
import {
  type Denial,
  deny,
  isDenial,
  type RedactionScope,
  type Redactor,
  type TextRedactor,
} from '../../../call/index.ts'
import { isSet } from '../dialects/checks.ts'

/** An open text of a candidate: its answer, or its thoughts. */
interface OpenText {
  readonly pieces: TextRedactor
  readonly candidate: number
  readonly isThought: boolean
}

/** Most candidates and parts of one event: it is rebuilt at once. */
const MAX_PARTS = 10_000
/** Texts of one response that may be open at a time. */
const MAX_TEXTS = 64

/**
 * The texts of a stream of Google's API. All texts of a candidate are one text, however they are divided into parts, and so are its thoughts.
 * Everything else of an event is redacted as a whole.
 */
export class ContentTexts {
  readonly #redactor: Redactor
  readonly #texts = new Map<string, OpenText>()

  constructor(redactor: Redactor) {
    this.#redactor = redactor
  }

  /** Results in the event with redacted texts; the last one has what is held back as well. */
  *take(event: JsonObject): Steps<JsonObject | Denial> {
    if (partCount(event) > MAX_PARTS) return deny('upstream_error', 'the response has too many parts to redact them')
    const found: TextAt[] = []
    const emptied = replacedIn(event, (one) => {
      found.push(one)
      return ''
    })
    const texts: string[] = []
    let isChanged = false
    for (const one of found) {
      const text = yield* this.#push(one)
      if (isDenial(text)) return text
      isChanged ||= text !== one.text
      texts.push(text)
    }
    const json = Buffer.from(JSON.stringify(isChanged ? withoutTokens(emptied) : emptied))
    const redacted = yield* this.#redactor.steps(json, EVERYTHING)
    if (isDenial(redacted)) return redacted
    const rest = parseLossless(redacted)
    let next = 0
    return this.#ended(isObject(rest) ? replacedIn(rest, () => texts[next++] ?? '') : emptied)
  }

  /** Returns an event with what is held back of all texts, since nothing follows; null: nothing is. */
  end(): JsonObject | Denial | null {
    const parts: [number, JsonObject][] = []
    for (const text of this.#texts.values()) {
      const rest = text.pieces.end()
      if (isDenial(rest)) return rest
      if (rest !== '') parts.push([text.candidate, { text: rest, ...(text.isThought && { thought: true }) }])
    }
    this.#texts.clear()
    if (parts.length === 0) return null
    return { candidates: parts.map(([index, part]) => ({ index, content: { role: 'model', parts: [part] } })) }
  }

  *#push({ text, candidate, isThought }: TextAt): Steps<string | Denial> {
    const key = `${candidate}/${isThought}`
    const known = this.#texts.get(key)
    if (known !== undefined) return yield* known.pieces.push(text)
    const open = { pieces: this.#redactor.pieces(false), candidate, isThought }
    if (this.#texts.size < MAX_TEXTS) {
      this.#texts.set(key, open)
      return yield* open.pieces.push(text)
    }
    const first = yield* open.pieces.push(text)
    const rest = isDenial(first) ? first : open.pieces.end()
    return isDenial(first) || isDenial(rest) ? rest : first + rest
  }

  /** Adds what is held back to candidates that end with this event, as parts after their last. */
  #ended(event: JsonObject): JsonObject | Denial {
    const { candidates } = event
    if (!Array.isArray(candidates)) return event
    const next: unknown[] = []
    for (const [place, candidate] of candidates.entries()) {
      if (!isObject(candidate) || !isSet(candidate.finishReason)) {
        next.push(candidate)
        continue
      }
      const parts = this.#rests(indexOf(candidate, place))
      if (isDenial(parts)) return parts
      next.push(parts.length === 0 ? candidate : withParts(candidate, parts))
    }
    return { ...event, candidates: next }
  }

  #rests(candidate: number): readonly JsonObject[] | Denial {
    const parts: JsonObject[] = []
    for (const isThought of [true, false]) {
      const key = `${candidate}/${isThought}`
      const rest = this.#texts.get(key)?.pieces.end() ?? ''
      if (isDenial(rest)) return rest
      this.#texts.delete(key)
      if (rest !== '') parts.push({ text: rest, ...(isThought && { thought: true }) })
    }
    return parts
  }
}

const EVERYTHING: RedactionScope = {}

function partCount({ candidates }: JsonObject): number {
  if (!Array.isArray(candidates)) return 0
  let count = candidates.length
  for (const candidate of candidates) {
    const parts = member(member(candidate, 'content'), 'parts')
    if (Array.isArray(parts)) count += parts.length
  }
  return count
}

interface TextAt {
  readonly text: string
  readonly candidate: number
  readonly isThought: boolean
}

/** Returns the event with another text in each part that has one. */
function replacedIn(event: JsonObject, replace: (text: TextAt) => string): JsonObject {
  const { candidates } = event
  if (!Array.isArray(candidates)) return event
  return {
    ...event,
    candidates: candidates.map((candidate: unknown, place) => {
      const content = member(candidate, 'content')
      const parts = member(content, 'parts')
      if (!isObject(candidate) || !isObject(content) || !Array.isArray(parts)) return candidate
      const next = parts.map((part: unknown) => {
        const text = member(part, 'text')
        if (!isObject(part) || typeof text !== 'string') return part
        const at = { text, candidate: indexOf(candidate, place), isThought: part.thought === true }
        return { ...part, text: replace(at) }
      })
      return { ...candidate, content: { ...content, parts: next } }
    }),
  }
}

/** The tokens that were generated, one by one, would say what was removed. */
function withoutTokens(event: JsonObject): JsonObject {
  const { candidates } = event
  if (!Array.isArray(candidates)) return event
  return {
    ...event,
    candidates: candidates.map((candidate: unknown) =>
      isObject(candidate) ? { ...candidate, logprobsResult: undefined } : candidate,
    ),
  }
}

function withParts(candidate: JsonObject, parts: readonly JsonObject[]): JsonObject {
  const { content } = candidate
  const before = member(content, 'parts')
  const all = [...(Array.isArray(before) ? before : []), ...parts]
  return { ...candidate, content: { role: 'model', ...(isObject(content) ? content : null), parts: all } }
}

function indexOf(candidate: unknown, place: number): number {
  const index = member(candidate, 'index')
  return typeof index === 'number' ? index : place
}

import { parseLossless } from '@plat/core'
import { type Denial, deny, type Frame, isDenial, type Passed, type Redactor, type Where } from '../../../call/index.ts'
import type { Review, Running } from '../../../pipeline/stage.ts'
import { isObject, type JsonObject, member } from '../../wire/json.ts'
import { createRedactReview, type RedactorOf } from '../../wire/redact.ts'
import { eventData, withEventData } from '../../wire/sse.ts'
import { chat } from '../dialects/chat.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { ModelFrame } from '../frame.ts'
import { ModelBody } from '../request.ts'
import { ChunkTexts } from './chunk-texts.ts'
import { EventTexts, nameOf } from './event-texts.ts'

/** Redacts what models generate: whole answers, and streams whose chunks are held back while they may be part of something. */
export function createAnswerRedactReview(redactorOf: RedactorOf): Review<'identity' | 'target'> {
  return createRedactReview('model', redactorOf, (redactor, { body }) => {
    const dialect = body instanceof ModelBody ? body.dialect : chat
    if (isDenial(redactor) || !(body instanceof ModelBody) || !body.request.stream || isByChoice(dialect)) {
      return new AnswerReview(redactor, dialect)
    }
    const texts = EventTexts.of(dialect.method, redactor)
    return texts === null ? new AnswerReview(unread(dialect), dialect) : new EventReview(redactor, dialect, texts)
  })
}

/** Pieces of a text are put together by their choice, which other streams do not have. */
function isByChoice({ generated }: Dialect): boolean {
  return generated.includes('choices')
}

function unread({ method }: Dialect): Denial {
  return deny('not_built', `streams of ${method} are not redacted yet in this version: ask without stream`)
}

class AnswerReview implements Running {
  readonly #redactor: Redactor | Denial
  /** What of an answer may be changed: what was generated, and what an error says. */
  readonly #where: Where
  readonly #chunks: ChunkTexts | null

  constructor(redactor: Redactor | Denial, dialect: Dialect) {
    this.#redactor = redactor
    this.#where = { within: dialect.generated.map((name) => [name]) }
    this.#chunks = isDenial(redactor) ? null : new ChunkTexts(redactor)
  }

  frame(frame: Frame): Passed {
    if (isDenial(this.#redactor)) return this.#redactor
    const { raw, role } = frame
    if (raw === null || role === 'progress') return [frame]
    const data = eventData(raw)
    if (data === null) return this.#whole(this.#redactor, frame, raw)
    if (role !== 'final') return this.#chunk(frame, raw, data)
    const held = this.#held()
    return isDenial(held) ? held : [...held, frame]
  }

  end(): Passed {
    return this.#held()
  }

  #whole(redactor: Redactor, frame: Frame, json: Uint8Array): Passed {
    const told = redactor.json(json, this.#where)
    if (isDenial(told)) return told
    if (told === json) return [frame]
    return [ModelFrame.body(frame.role === 'error' ? 'error' : 'final', withoutLogprobs(told))]
  }

  #chunk(frame: Frame, raw: Uint8Array, data: Uint8Array): Passed {
    const chunk = parsed(data)
    if (!isObject(chunk)) return [frame]
    const told = this.#chunks?.take(chunk) ?? null
    if (told === null) return [frame]
    if (isDenial(told)) return told
    return [...told.before.map(eventOf), ModelFrame.event(withEventData(raw, jsonOf(told.chunk)))]
  }

  /** What is still held back, once nothing follows. */
  #held(): readonly Frame[] | Denial {
    const held = this.#chunks?.end() ?? []
    return isDenial(held) ? held : held.map(eventOf)
  }
}

/** A stream of named events; an answer that is none, such as an error, is looked at as a whole. */
class EventReview implements Running {
  readonly #whole: AnswerReview
  readonly #dialect: Dialect
  readonly #texts: EventTexts

  constructor(redactor: Redactor, dialect: Dialect, texts: EventTexts) {
    this.#whole = new AnswerReview(redactor, dialect)
    this.#dialect = dialect
    this.#texts = texts
  }

  frame(frame: Frame): Passed {
    const { raw, role } = frame
    const data = raw === null ? null : eventData(raw)
    if (raw === null || data === null) return this.#whole.frame(frame)
    const event = role === 'progress' ? null : parsed(data)
    if (!isObject(event)) return [frame]
    const told = this.#texts.take(event, data)
    if (isDenial(told)) return told
    const held = role === 'final' ? this.#texts.end() : []
    if (isDenial(held)) return held
    const before = [...told.before, ...held]
    if (told.json === null && before.length === 0) return [frame]
    const next = told.json === null ? frame : this.#dialect.events.frame(withEventData(raw, told.json))
    return [...before.map((one) => this.#eventOf(one)), next]
  }

  end(): Passed {
    const held = this.#texts.end()
    return isDenial(held) ? held : held.map((one) => this.#eventOf(one))
  }

  #eventOf(event: JsonObject): Frame {
    return this.#dialect.events.frame(Buffer.from(`event: ${nameOf(event)}\ndata: ${JSON.stringify(event)}\n\n`))
  }
}

function parsed(data: Uint8Array): unknown {
  try {
    return parseLossless(data)
  } catch {
    // No reader can make a chunk of it.
    return undefined
  }
}

function eventOf(chunk: object): ModelFrame {
  return ModelFrame.event(Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`))
}

function jsonOf(chunk: object): Uint8Array {
  return Buffer.from(JSON.stringify(chunk))
}

/** The tokens that were generated, one by one, would say what was taken out. */
function withoutLogprobs(json: Uint8Array): Uint8Array {
  const answer = parseLossless(json)
  const choices = member(answer, 'choices')
  if (!isObject(answer) || !Array.isArray(choices) || !choices.some((one) => isObject(member(one, 'logprobs'))))
    return json
  const told = choices.map((one: unknown) => (isObject(one) ? { ...one, logprobs: null } : one))
  return jsonOf({ ...answer, choices: told })
}

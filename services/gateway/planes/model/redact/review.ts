import {
  hasPlainNumbers,
  isObject,
  type JsonObject,
  losslessSteps,
  member,
  parseLossless,
  type Steps,
} from '@plat/core'
import {
  type Denial,
  deny,
  type Frame,
  type FrameVerdict,
  isDenial,
  type RedactionScope,
  type Redactor,
} from '../../../call/index.ts'
import type { Review, RunningReview } from '../../../pipeline/stage.ts'
import { createRedactReview, inSteps, type RedactorOf, redactMessage } from '../../wire/redact.ts'
import { withEventData } from '../../wire/sse.ts'
import { dialectOfBatch } from '../dialects/batches.ts'
import { chat } from '../dialects/chat.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { ModelFrame } from '../frame.ts'
import { ModelBody } from '../request.ts'
import { ChunkTexts } from './chunk-texts.ts'
import { ContentTexts } from './content-texts.ts'
import { withEncoded, withoutEncoded } from './encoded.ts'
import { EventTexts, nameOf } from './event-texts.ts'
import { LinesReview } from './lines.ts'

/** Redacts what models generate: whole answers, and streams whose chunks are held back while they may be part of something. */
export function createAnswerRedactReview(redactorOf: RedactorOf): Review<'identity' | 'target'> {
  return createRedactReview('model', redactorOf, (redactor, { body, operation, method, facts }) => {
    if (facts.target.results === true) return new LinesReview(redactor)
    if (operation === 'model.batch') return new ResponseReview(redactor, dialectOfBatch(method))
    const dialect = body instanceof ModelBody ? body.dialect : chat
    if (isDenial(redactor) || !(body instanceof ModelBody) || !body.request.stream || isByChoice(dialect)) {
      return new ResponseReview(redactor, dialect)
    }
    if (dialect.generated.includes('candidates')) return new ContentReview(redactor, dialect)
    const texts = EventTexts.of(dialect.method, redactor)
    return texts === null ? new ResponseReview(unread(dialect), dialect) : new EventReview(redactor, dialect, texts)
  })
}

/** Pieces of a text are put together by their choice, which other streams do not have. */
function isByChoice({ generated }: Dialect): boolean {
  return generated.includes('choices')
}

function unread({ method }: Dialect): Denial {
  return deny('not_built', `streams of ${method} are not redacted yet in this version: send it without stream`)
}

class ResponseReview implements RunningReview {
  readonly #redactor: Redactor | Denial
  /** The parts of a response that may be redacted: generated content and messages of errors. */
  readonly #where: RedactionScope
  readonly #chunks: ChunkTexts | null
  readonly #dialect: Dialect

  constructor(redactor: Redactor | Denial, dialect: Dialect) {
    this.#redactor = redactor
    this.#dialect = dialect
    this.#where = { within: dialect.generated.map((name) => [name]) }
    this.#chunks = isDenial(redactor) ? null : new ChunkTexts(redactor)
  }

  frame(frame: Frame): FrameVerdict {
    if (isDenial(this.#redactor)) return this.#redactor
    if (!(frame instanceof ModelFrame)) return deny('internal', 'a response came in a form that cannot be redacted')
    if (!frame.isEvent) return this.#whole(this.#redactor, frame)
    if (frame.role !== 'final') return this.#chunk(frame)
    const held = this.#held()
    return isDenial(held) ? held : [...held, frame]
  }

  end(): FrameVerdict {
    return this.#held()
  }

  #whole(redactor: Redactor, frame: ModelFrame): FrameVerdict {
    const { encoded = [] } = this.#dialect
    const { value } = frame
    const texts = encoded.length > 0 && isObject(value) ? withoutEncoded(value, encoded) : null
    const read = texts === null ? (frame.json ?? frame.raw) : jsonOf(texts)
    return redactMessage(redactor, read, this.#where, (redacted) => {
      if (redacted === read) return [frame]
      const answer = frame.json === frame.raw ? null : member(parseLossless(redacted), 'text')
      if (answer !== null) return [ModelFrame.text(Buffer.from(String(answer)))]
      if (isObject(value) && texts !== null)
        return [ModelFrame.body(jsonOf(withEncoded(parseLossless(redacted), value, encoded)))]
      const json = withoutLogprobs(redacted)
      return [frame.role === 'error' ? ModelFrame.error(json) : ModelFrame.body(json)]
    })
  }

  #chunk(frame: ModelFrame): FrameVerdict {
    return inSteps(this.#chunkSteps(frame), frame.raw.length)
  }

  *#chunkSteps(frame: ModelFrame): Steps<readonly Frame[] | Denial> {
    const chunk = yield* losslessOf(frame)
    const redacted = isObject(chunk) && this.#chunks !== null ? yield* this.#chunks.take(chunk) : null
    if (redacted === null) return [frame]
    if (isDenial(redacted)) return redacted
    const next = this.#dialect.events.frame(withEventData(frame.raw, jsonOf(redacted.chunk)))
    return [...redacted.before.map((one) => this.#eventOf(one)), next]
  }

  #eventOf(chunk: object): Frame {
    return this.#dialect.events.frame(Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`))
  }

  /** Returns the text that is held back, at the end of the response. */
  #held(): readonly Frame[] | Denial {
    const held = this.#chunks?.end() ?? []
    return isDenial(held) ? held : held.map((one) => this.#eventOf(one))
  }
}

/** A stream of Google's API. */
class ContentReview implements RunningReview {
  readonly #whole: ResponseReview
  readonly #dialect: Dialect
  readonly #texts: ContentTexts

  constructor(redactor: Redactor, dialect: Dialect) {
    this.#whole = new ResponseReview(redactor, dialect)
    this.#dialect = dialect
    this.#texts = new ContentTexts(redactor)
  }

  frame(frame: Frame): FrameVerdict {
    if (!(frame instanceof ModelFrame) || !frame.isEvent) return this.#whole.frame(frame)
    return inSteps(this.#event(frame), frame.raw.length)
  }

  *#event(frame: ModelFrame): Steps<readonly Frame[] | Denial> {
    const event = yield* losslessOf(frame)
    if (!isObject(event)) return [frame]
    const redacted = yield* this.#texts.take(event)
    if (isDenial(redacted)) return redacted
    return [this.#eventOf(redacted)]
  }

  end(): FrameVerdict {
    const rest = this.#texts.end()
    return rest === null ? [] : isDenial(rest) ? rest : [this.#eventOf(rest)]
  }

  /** Google's client splits a stream where two line ends of one kind follow each other. */
  #eventOf(event: JsonObject): Frame {
    return this.#dialect.events.frame(Buffer.from(`data: ${JSON.stringify(event)}\n\n`))
  }
}

/** A stream of named events. A response that is none, such as an error, is redacted as a whole. */
class EventReview implements RunningReview {
  readonly #whole: ResponseReview
  readonly #dialect: Dialect
  readonly #texts: EventTexts

  constructor(redactor: Redactor, dialect: Dialect, texts: EventTexts) {
    this.#whole = new ResponseReview(redactor, dialect)
    this.#dialect = dialect
    this.#texts = texts
  }

  frame(frame: Frame): FrameVerdict {
    if (!(frame instanceof ModelFrame) || !frame.isEvent) return this.#whole.frame(frame)
    return inSteps(this.#event(frame), frame.raw.length)
  }

  *#event(frame: ModelFrame): Steps<readonly Frame[] | Denial> {
    const { raw, json } = frame
    const event = yield* losslessOf(frame)
    if (json === null || !isObject(event)) return [frame]
    const redacted = yield* this.#texts.take(event, json)
    if (isDenial(redacted)) return redacted
    const held = frame.role === 'final' ? this.#texts.end() : []
    if (isDenial(held)) return held
    const before = [...redacted.before, ...held]
    if (redacted.json === null && before.length === 0) return [frame]
    const next = redacted.json === null ? frame : this.#dialect.events.frame(withEventData(raw, redacted.json))
    return [...before.map((one) => this.#eventOf(one)), next]
  }

  end(): FrameVerdict {
    const held = this.#texts.end()
    return isDenial(held) ? held : held.map((one) => this.#eventOf(one))
  }

  #eventOf(event: JsonObject): Frame {
    return this.#dialect.events.frame(Buffer.from(`event: ${nameOf(event)}\ndata: ${JSON.stringify(event)}\n\n`))
  }
}

/** The value of an event with the literals of its numbers; null where it has no data. */
function* losslessOf({ json, value }: ModelFrame): Steps<unknown> {
  if (json === null || hasPlainNumbers(json)) return json === null ? null : value
  yield
  return yield* losslessSteps(json)
}

function jsonOf(chunk: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(chunk))
}

/** The tokens that were generated, one by one, would say what was taken out. */
function withoutLogprobs(json: Uint8Array): Uint8Array {
  const answer = parseLossless(json)
  const candidates = member(answer, 'candidates')
  if (isObject(answer) && Array.isArray(candidates))
    return jsonOf({ ...answer, candidates: candidates.map(withoutTokens) })
  const choices = member(answer, 'choices')
  if (!isObject(answer) || !Array.isArray(choices) || !choices.some((one) => isObject(member(one, 'logprobs'))))
    return json
  const redacted = choices.map((one: unknown) => (isObject(one) ? { ...one, logprobs: null } : one))
  return jsonOf({ ...answer, choices: redacted })
}

function withoutTokens(candidate: unknown): unknown {
  return isObject(candidate) ? { ...candidate, logprobsResult: undefined } : candidate
}

import {
  compactText,
  ElementValues,
  findValue,
  isObject,
  type JsonObject,
  MESSAGE_LIMITS,
  member,
  parseStrict,
  type Steps,
} from '@plat/core'
import { eventData, SseSplitter } from '../../wire/sse.ts'
import { InvalidResponseError } from '../invalid.ts'
import { type AwsMessage, AwsStreamSplitter } from './aws-stream.ts'
import { LongTexts } from './long-texts.ts'
import type { PartWriter, ResponsePart } from './response-parts.ts'

/** Turns the bytes of a provider's stream into those of the caller's dialect, piece by piece, however they are cut. */
export interface StreamTranslator {
  /**
   * Returns the events that these bytes complete, in steps: the longest parses one event. Throws `InvalidResponseError`, and errors of the
   * decoders below.
   */
  push(chunk: Uint8Array): Steps<Uint8Array>
  /** Returns the events that the end of the provider's stream completes, in steps. */
  end(): Steps<Uint8Array>
}

export const SSE_TYPE = 'text/event-stream'
export const AWS_STREAM_TYPE = 'application/vnd.amazon.eventstream'

/** Data of the event that ends streams of chat completions. */
const DONE = Buffer.from('[DONE]')

const NOTHING = new Uint8Array(0)

/** The JSON object of a response or of a part of one. */
export interface ProviderObject {
  readonly value: JsonObject
  /** Its bytes, which have the literals of its numbers. */
  readonly json: Uint8Array
}

/** Reads a part of a response, with the name of its event where the framing has one. Throws `InvalidResponseError`. */
export type ReadPart = (part: ProviderObject, name: string) => readonly ResponsePart[]

/** Throws `InvalidResponseError`. */
export function objectOf(json: Uint8Array): ProviderObject {
  let value: unknown
  try {
    value = parseStrict(json, MESSAGE_LIMITS)
  } catch {
    throw new InvalidResponseError('what the provider sent is not JSON')
  }
  if (!isObject(value)) throw new InvalidResponseError('what the provider sent is not a JSON object')
  return { value, json }
}

/**
 * Arguments of tool calls as the provider wrote them, so that numbers keep their digits. Only the arguments are read again: restoring the
 * literals of all numbers would take ten times as long as parsing.
 */
export class ArgumentTexts {
  readonly #json: Uint8Array
  readonly #list: readonly (string | 0)[]
  readonly #member: readonly string[]
  #values: ElementValues | null = null

  /** `list`: path of the list with the calls. `member`: path of the arguments in an element of it. */
  constructor({ json }: ProviderObject, list: readonly (string | 0)[], member: readonly string[]) {
    this.#json = json
    this.#list = list
    this.#member = member
  }

  /** Returns the arguments in an element behind those of earlier calls, as JSON without white space; an empty object if there are none. */
  textOf(index: number): string {
    this.#values ??= new ElementValues(this.#json, findValue(this.#json, 0, this.#list) ?? 0, this.#member)
    const span = this.#values.spanIn(index)
    const text = span === null ? NULL : compactText(this.#json, span)
    return text === NULL ? '{}' : text
  }
}

const NULL = 'null'

/** A JSON object of a stream, with the name of its event where the framing has one. */
type StreamPart = readonly [part: ProviderObject, name: string]

/** Takes the bytes of a stream apart, however they are cut. */
interface Parts {
  /** The parts that these bytes complete; each is parsed when it is read. */
  push(chunk: Uint8Array): Iterable<StreamPart>
  /** Returns the events that the end of the stream completes, or null if it ended within a part. */
  rest(): readonly StreamPart[] | null
}

/** Server-sent events with one JSON object each. */
export class SseParts implements Parts {
  readonly #splitter = new SseSplitter();

  *push(chunk: Uint8Array): Iterable<StreamPart> {
    for (const event of this.#splitter.push(chunk)) yield* partOf(event)
  }

  rest(): readonly StreamPart[] {
    return this.#splitter.end().flatMap(partOf)
  }
}

function partOf(event: Uint8Array): readonly StreamPart[] {
  const data = eventData(event)
  return data === null || data.length === 0 || DONE.equals(data) ? [] : [[objectOf(data), '']]
}

/** An AWS event stream with one JSON object in each message. */
export class AwsParts implements Parts {
  readonly #splitter = new AwsStreamSplitter();

  *push(chunk: Uint8Array): Iterable<StreamPart> {
    for (const message of this.#splitter.push(chunk)) {
      const name = eventNameOf(message)
      yield [objectOf(message.payload), name]
    }
  }

  rest(): readonly StreamPart[] | null {
    return this.#splitter.isTorn ? null : []
  }
}

/** The parts of a provider's response as events of the caller's API. */
export class WrittenStream implements StreamTranslator {
  readonly #writer: PartWriter
  readonly #texts = new LongTexts()
  readonly #parts: Parts
  readonly #read: ReadPart

  constructor(createWriter: (texts: LongTexts) => PartWriter, { parts, read }: ProviderStream) {
    this.#writer = createWriter(this.#texts)
    this.#parts = parts
    this.#read = read
  }

  *push(chunk: Uint8Array): Steps<Uint8Array> {
    const events = yield* this.#events(this.#parts.push(chunk))
    return events === '' ? NOTHING : Buffer.from(events)
  }

  /** A part that was cut off is not an end, whatever came before it. */
  *end(): Steps<Uint8Array> {
    const rest = this.#parts.rest()
    if (rest === null) return NOTHING
    const events = yield* this.#events(rest)
    const end = this.#writer.end()
    yield
    return Buffer.from(events + (yield* this.#texts.write(end)))
  }

  *#events(parts: Iterable<StreamPart>): Steps<string> {
    const events: string[] = []
    for (const [part, name] of parts) {
      yield
      const read = this.#read(part, name)
      yield
      for (const one of read) {
        const written = this.#writer.event(one)
        yield
        events.push(yield* this.#texts.write(written))
        yield
      }
    }
    return events.join('')
  }
}

/** How the stream of a provider is read. */
export interface ProviderStream {
  readonly parts: Parts
  readonly read: ReadPart
}

/** The events of Anthropic's `messages`, each wrapped in a message of an AWS event stream. */
export class AwsToMessages implements StreamTranslator {
  readonly #splitter = new AwsStreamSplitter();

  *push(chunk: Uint8Array): Steps<Uint8Array> {
    let text = ''
    for (const message of this.#splitter.push(chunk)) {
      if (eventNameOf(message) !== 'chunk') continue
      const json = wrapped(objectOf(message.payload).value)
      yield
      const type = member(objectOf(json).value, 'type')
      text += `event: ${typeof type === 'string' && /^\w+$/.test(type) ? type : 'message'}\n${linesOf(json)}\n`
      yield
    }
    return text === '' ? NOTHING : Buffer.from(text)
  }

  // biome-ignore lint/correctness/useYield: without steps
  *end(): Steps<Uint8Array> {
    return NOTHING
  }
}

/** JSON may stand on several lines. */
function linesOf(json: Uint8Array): string {
  const lines = Buffer.from(json)
    .toString('utf8')
    .split(/\r\n|\r|\n/)
  return `${lines.map((line) => `data: ${line}`).join('\n')}\n`
}

/** Unwraps an event of `InvokeModelWithResponseStream`: the model's event as JSON in base64. Throws `InvalidResponseError`. */
export function wrapped({ bytes }: JsonObject): Uint8Array {
  if (typeof bytes !== 'string') throw new InvalidResponseError('a chunk of Bedrock without bytes')
  return Buffer.from(bytes, 'base64')
}

/** Throws where AWS reports an error in its stream. */
function eventNameOf({ headers }: AwsMessage): string {
  const kind = headers.get(':message-type')
  if (kind !== 'event')
    throw new InvalidResponseError(
      `AWS reports ${headers.get(':exception-type') ?? headers.get(':error-code') ?? 'an error'}`,
    )
  return headers.get(':event-type') ?? ''
}

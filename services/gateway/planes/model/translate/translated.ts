import type { IncomingHttpHeaders } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import { type JsonObject, Slices, type Steps } from '@plat/core'
import { type Call, type Denial, isDenial } from '../../../call/index.ts'
import type { ByteSource } from '../../wire/events.ts'
import { header, isStreamType } from '../../wire/message.ts'
import { ModelBody } from '../request.ts'
import type { ModelEndpoint } from '../upstream/endpoint.ts'
import { translatorOf } from './all.ts'
import type { ResponseFacts } from './response-parts.ts'
import { SSE_TYPE, type StreamTranslator } from './streams.ts'
import type { Translator } from './translator.ts'

/**
 * Returns the translation of a call for an endpoint with another API; null if the endpoint supports the method itself. A denial names the
 * member of the request that cannot be translated.
 */
export function translatedFor(
  call: Pick<Call, 'id' | 'method' | 'body' | 'wire'>,
  { wire, isReasoning }: Pick<ModelEndpoint, 'wire' | 'isReasoning'>,
  model: string | null,
): Translated | Denial | null {
  const { body } = call
  // Most providers support the method themselves, and need no search.
  const translator = wire.native.has(call.method) ? null : translatorOf(wire.speaks, call.method)
  if (translator === null || !(body instanceof ModelBody)) return null
  const betas = header(call.wire.headers, 'anthropic-beta')
  const bytes = translator.request({ body, model: model ?? '', reasoning: isReasoning(model ?? ''), betas })
  if (isDenial(bytes)) return bytes
  const id = `${ID_PREFIXES[call.method] ?? ''}${call.id}`
  return new Translated({ translator, bytes, request: body.value }, { id, model: body.request.model ?? model ?? '' })
}

/** Beginnings of the ids of responses. */
const ID_PREFIXES: Readonly<Record<string, string>> = {
  'chat/completions': 'chatcmpl-',
  messages: 'msg_',
  responses: 'resp_',
}

/** A translated request, and the translation of its response. */
export class Translated {
  readonly bytes: Uint8Array
  readonly #translator: Translator
  readonly #request: JsonObject
  readonly #facts: Omit<ResponseFacts, 'created'>

  constructor(
    { translator, bytes, request }: { translator: Translator; bytes: Uint8Array; request: JsonObject },
    facts: Omit<ResponseFacts, 'created'>,
  ) {
    this.bytes = bytes
    this.#translator = translator
    this.#request = request
    this.#facts = facts
  }

  /** The provider reads the headers of the caller's API as well. */
  get sameHeaders(): boolean {
    return this.#translator.sameHeaders
  }

  /** The requested format of the provider's response. */
  get accept(): string {
    return this.#translator.streamType === SSE_TYPE ? `application/json, ${SSE_TYPE}` : '*/*'
  }

  isStream(headers: IncomingHttpHeaders): boolean {
    const { streamType } = this.#translator
    return streamType === SSE_TYPE ? isStreamType(headers) : header(headers, 'content-type') === streamType
  }

  /** Translates a whole response, in steps. Throws `InvalidResponseError`. `created`: seconds since the epoch. */
  answer(json: Uint8Array, created: number): Steps<Uint8Array> {
    return this.#translator.answer(json, { ...this.#facts, created }, this.#request)
  }

  /** Null: the stream comes in the caller's dialect. */
  stream(created: number): StreamTranslator | null {
    return this.#translator.stream({ ...this.#facts, created })
  }
}

const NOTHING: readonly Uint8Array[] = []

/** A provider's stream, translated to the caller's dialect in slices. */
export class TranslatedBytes implements ByteSource {
  readonly #source: ByteSource
  readonly #translator: StreamTranslator
  /** Chunks that are not translated yet. */
  #waiting: Uint8Array[] = []
  /** Translation of the chunk before them; null: it is complete. */
  #steps: Steps<Uint8Array> | null = null
  /** The provider's stream has ended, and its end is translated. */
  #isEnding = false

  constructor(source: ByteSource, translator: StreamTranslator) {
    this.#source = source
    this.#translator = translator
  }

  news(): Promise<void> | null {
    if (this.#isBehind) return setImmediate()
    return this.#isEnding ? null : this.#source.news()
  }

  /** Returns the translated events; empty if none is complete yet. Throws if the upstream failed or sent an invalid event. */
  take(): readonly Uint8Array[] | null {
    if (!this.#isBehind) {
      if (this.#isEnding) return null
      const chunks = this.#source.take()
      if (chunks === null) {
        this.#isEnding = true
        this.#steps = this.#translator.end()
      } else this.#waiting = chunks.toReversed()
    }
    return this.#translate()
  }

  get #isBehind(): boolean {
    return this.#steps !== null || this.#waiting.length > 0
  }

  /** Translates for the time of one slice. */
  #translate(): readonly Uint8Array[] {
    const slices = new Slices()
    const translated: Uint8Array[] = []
    do {
      const chunk = this.#steps === null ? this.#waiting.pop() : undefined
      if (chunk !== undefined) this.#steps = this.#translator.push(chunk)
      const step = this.#steps?.next()
      if (step?.done === true) {
        this.#steps = null
        if (step.value.length > 0) translated.push(step.value)
      }
    } while (this.#isBehind && !slices.isOver)
    return translated.length === 0 ? NOTHING : translated
  }
}

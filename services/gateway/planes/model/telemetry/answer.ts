import { isObject, type JsonObject, member } from '@plat/core'
import type { Frame, FrameRun } from '../../../call/index.ts'
import { Choices } from './choices.ts'

/** Properties of a response for telemetry. */
export interface ResponseFacts {
  readonly id: string | null
  readonly model: string | null
  readonly finishReasons: readonly string[]
  /** The content; null if it was not requested, or exceeds the limit. */
  readonly messages: readonly JsonObject[] | null
}

/** Start of the finish reason in an event of OpenAI's chat; null in all other events. */
const ENDS = [Buffer.from('"finish_reason":"'), Buffer.from('"finish_reason": "')]

/** Longest reported id of a response or name of a model, in characters. */
const MAX_NAME = 256

/** Collects the model, finish reasons and, if requested, the content of a response. */
export class ResponseObserver {
  readonly #choices: Choices
  readonly #keepsWords: boolean
  #id: string | null = null
  #model: string | null = null
  #begun = false

  /** `maxLength`: characters of what is said that are kept at most; 0: nothing is. */
  constructor({ maxLength }: { readonly maxLength: number }) {
    this.#choices = new Choices(maxLength)
    this.#keepsWords = maxLength > 0
  }

  frame(frame: Frame): void {
    if (frame.role === 'progress' || frame.role === 'error') return
    const { value } = frame
    if (!isObject(value)) return
    this.#named(value)
    for (const name of ['message', 'response']) this.#named(value[name])
    this.#choices.take(value)
  }

  /** Most events say only more of the same, and are not parsed unless it is kept. */
  skim(run: FrameRun): void {
    const { raw } = run
    const view = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
    if (!this.#keepsWords && this.#begun && !ENDS.some((end) => view.includes(end))) return
    for (const frame of run.apart()) this.frame(frame)
  }

  facts(): ResponseFacts {
    return {
      id: this.#id,
      model: this.#model,
      finishReasons: this.#choices.finishReasons,
      messages: this.#keepsWords ? this.#choices.messages : null,
    }
  }

  #named(value: unknown): void {
    this.#begun = true
    this.#id ??= nameIn(value, 'id')
    this.#model ??= nameIn(value, 'model')
  }
}

/** The embedding of a text is long and holds no words: only the model is read. */
export class EmbeddingObserver {
  #model: string | null = null

  frame({ value, role }: Frame): void {
    if (role === 'final') this.#model = nameIn(value, 'model')
  }

  skim(): void {}

  facts(): ResponseFacts {
    return { id: null, model: this.#model, finishReasons: [], messages: [] }
  }
}

function nameIn(value: unknown, name: string): string | null {
  const text = member(value, name)
  return typeof text === 'string' && text !== '' && text.length <= MAX_NAME ? text : null
}

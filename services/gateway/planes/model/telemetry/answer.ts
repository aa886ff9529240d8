import type { Frame, FrameRun } from '../../../call/index.ts'
import { isObject, type JsonObject, member } from '../../wire/json.ts'
import { Choices } from './choices.ts'

/** What an answer says of itself. */
export interface ResponseFacts {
  readonly id: string | null
  readonly model: string | null
  readonly finishReasons: readonly string[]
  /** Null: not asked for, or more of it than is kept. */
  readonly messages: readonly JsonObject[] | null
}

/** How an event of OpenAI's chat begins to tell why it ended; null stands there in all others. */
const ENDS = [Buffer.from('"finish_reason":"'), Buffer.from('"finish_reason": "')]

/** Longest name of an answer or a model that is told, in characters. */
const MAX_NAME = 256

/** Hears the answer of a model: who answered, why it ended, and, if that is asked for, what was said. */
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

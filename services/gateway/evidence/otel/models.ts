import type { Body, Call, Frame, FrameRun } from '../../call/index.ts'
import type { Attributes } from './spans/span.ts'

/** How traces tell of model calls: the words of OpenTelemetry's conventions for generative AI. */
export interface ModelWords {
  /** `gen_ai.operation.name` of an endpoint below `/v1/`; null: nothing is generated. */
  operation(method: string): string | null
  /** `gen_ai.provider.name` of whoever answered; null: the route has gone. */
  provider(call: Call<'target'>): string | null
  /** What a request asks for, but for its content. */
  request(body: Body | null): Attributes
  /** What the model was told; null: nothing that has words of its own. */
  prompt(body: Body | null): Prompt | null
  /** Listens to the answer of a call; null: it generates nothing. */
  listen(body: Body | null, content: Content): ModelResponse | null
}

/** Messages in the shape of the conventions' JSON schemas. */
export interface Prompt {
  readonly instructions: readonly object[]
  readonly messages: readonly object[]
}

/** How much of an answer's content is kept, in characters; 0: nothing. */
export interface Content {
  readonly maxLength: number
}

/** Hears an answer as its caller gets it. */
export interface ModelResponse {
  frame(frame: Frame): void
  /** Events that pass as they are. */
  skim(run: FrameRun): void
  told(): ModelFacts
}

export interface ModelFacts {
  readonly id: string | null
  /** The model that answered, as the provider names it. */
  readonly model: string | null
  readonly finishReasons: readonly string[]
  /** Null: not asked for, or more of it than is kept. */
  readonly messages: readonly object[] | null
}

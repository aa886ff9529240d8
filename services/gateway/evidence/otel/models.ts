import type { Body, Call, Frame, FrameRun } from '../../call/index.ts'
import type { Attributes } from './spans/span.ts'

/** Attributes of model calls by OpenTelemetry's conventions for generative AI. */
export interface ModelWords {
  /** Returns `gen_ai.operation.name` of an endpoint below `/v1/`, or null if it generates nothing. */
  operation(method: string): string | null
  /** Returns `gen_ai.provider.name` of the called provider, or null if its route was removed. */
  provider(call: Call<'target'>): string | null
  /** Returns attributes of a request, without its content. */
  request(body: Body | null): Attributes
  /** Returns the prompt of a request, or null if it has none. */
  prompt(body: Body | null): Prompt | null
  /** Observes the response of a call; null if it generates nothing. */
  listen(body: Body | null, content: Content): ModelResponse | null
}

/** Messages in the shape of the conventions' JSON schemas. */
export interface Prompt {
  readonly instructions: readonly object[]
  readonly messages: readonly object[]
}

/** Maximum kept content of a response, in characters; 0 for none. */
export interface Content {
  readonly maxLength: number
}

/** Observer of a response as sent to the caller. */
export interface ModelResponse {
  frame(frame: Frame): void
  /** Called with events that pass unchanged. */
  skim(run: FrameRun): void
  facts(): ModelFacts
}

export interface ModelFacts {
  readonly id: string | null
  /** The responding model, as the provider names it. */
  readonly model: string | null
  readonly finishReasons: readonly string[]
  /** Null if not enabled, or larger than the limit. */
  readonly messages: readonly object[] | null
}

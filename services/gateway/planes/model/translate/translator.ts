import type { Denial } from '../../../call/index.ts'
import type { ModelBody } from '../request.ts'
import type { Told } from './said.ts'

/** A request that has to be told to a provider which does not speak the caller's dialect. */
export interface Asked {
  readonly body: ModelBody
  readonly model: string
  /** `anthropic-beta` of the caller; null: none. */
  readonly betas: string | null
}

/** How requests of one dialect are told to a provider that speaks another, and how its answers are told to the caller. */
export interface Translator {
  /** The body for the provider; a denial names the member that it has no word for (`data.param`). */
  request(asked: Asked): Uint8Array | Denial
  /** A whole answer in the caller's dialect. Throws `Garbled`. */
  answer(json: Uint8Array, told: Told): Uint8Array
  /** The translator of one streamed answer; null: the stream is in the caller's dialect as it comes. */
  stream(told: Told): StreamTranslator | null
  /** Media type of the provider's streams. */
  readonly streamType: string
}

/** Turns the bytes of a provider's stream into those of the caller's dialect, piece by piece, however they are cut. */
export interface StreamTranslator {
  /** What these bytes complete, as whole events; empty: nothing. Throws `Garbled`, and what the decoders below throw. */
  push(chunk: Uint8Array): Uint8Array
  /** The provider has ended its stream. */
  end(): Uint8Array
}

export const SSE_TYPE = 'text/event-stream'
export const AWS_STREAM_TYPE = 'application/vnd.amazon.eventstream'

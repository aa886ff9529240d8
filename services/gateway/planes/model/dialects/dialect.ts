import type { JsonObject } from '@plat/core'
import type { Denial, Frame, MediaDemand, Operation, Usage } from '../../../call/index.ts'
import type { ModelFrame } from '../frame.ts'
import type { Tokenizer } from '../tokens/estimate.ts'
import type { UploadedFile } from '../uploads/read.ts'
import type { ShapeFault } from './shapes.ts'

/** Names of the limit of output tokens: reasoning models use the second, `responses` the third. */
export type MaxTokensMember = 'max_tokens' | 'max_completion_tokens' | 'max_output_tokens'

/** The properties of a request that the gateway uses; everything else is forwarded uninterpreted. */
export interface ModelRequest {
  /** The model as named by the caller; null: the route determines it. */
  readonly model: string | null
  readonly stream: boolean
  /** The caller requested the usage chunk of a stream. */
  readonly usageAsked: boolean
  /** Maximum number of tokens of each choice; null: the caller set no limit. */
  readonly maxTokens: number | null
  /** The member with that limit; null if there is none. */
  readonly maxTokensMember: MaxTokensMember | null
  /** `n`: each choice is generated and charged separately. */
  readonly choices: number
  /**
   * Upper bound of the prompt's tokens: its bytes. No tokenizer produces more tokens than a text has bytes, and the JSON of a message
   * is longer than what a chat template adds.
   */
  readonly inputTokensAtMost: number
  /** False for images, audio, files, predicted output and tools that run at the provider, whose tokens the bytes do not bound. */
  readonly bounded: boolean
  /** Number of images, if the bytes bound everything else; null: there is input beside them that they do not bound. */
  readonly images: number | null
  /** By what not even the context window of the model bounds its cost: output or tools at the provider, or other input than text. Null: nothing. */
  readonly openEnd: string | null
  /** Options of the request that change its price, by their names in price tables: `service_tier=priority`. */
  readonly options: readonly string[]
}

/** The properties of a request that its dialect reads. */
export type DialectRequest = Omit<ModelRequest, 'options' | 'openEnd' | 'images'>

/** The usage that a response reports. */
export interface Report {
  readonly usage: Usage
  /** False: more may have been generated than it says, as at the beginning of a stream. */
  readonly whole: boolean
}

/** How the events of a stream are read. */
export interface Events {
  /** One event, parsed and checked. Throws `InvalidResponseError`, also where the upstream reports an error. */
  frame(event: Uint8Array): ModelFrame
  /**
   * Whether no review has to look at an event: it neither ends the stream nor reports usage, and is one of many of its kind. May depend on
   * which members there are, on their types, and on `type`, but on no other value: what matches the template of a plain event is plain.
   */
  isPlain(frame: ModelFrame): boolean
}

/** A request as bytes, and parsed. */
export interface WrittenRequest {
  readonly bytes: Uint8Array
  readonly value: JsonObject
}

/** An error to write in a dialect. */
export interface DialectError {
  readonly denial: Denial
  readonly status: number
  /** The text that clients show. */
  readonly message: string
  /** Null: the provider's error, in the dialect of the caller. */
  readonly decisionId: string | null
}

/** One endpoint of OpenAI's or Anthropic's API that has a body: how it is read, what its answers mean, and how it is refused. */
export interface Dialect {
  /** Below `/v1/`, as metrics and records name it. */
  readonly method: string
  readonly operation: Operation
  /** The path names the model, and the body does not; absent: the body does. */
  readonly modelInPath?: true
  /** The body is a form with files; absent: it is JSON. */
  readonly multipart?: true
  /** Form of the response to a request, unless it is an error; absent: JSON, or a stream where the request says so. */
  answer?(value: JsonObject): 'json' | 'text' | 'audio'
  /** Upper bound of the use of a request beside text; absent: tokens alone. */
  media?(value: JsonObject, files: readonly UploadedFile[]): MediaDemand
  /** Returns what is wrong with a body, or null if the members that the gateway uses are valid. */
  fault(value: JsonObject): Denial | null
  request(bytes: Uint8Array, value: JsonObject): DialectRequest
  /** Where a limit of output tokens is written when the caller wrote none; null: nothing is generated. */
  maxTokensMember(reasoning: boolean): MaxTokensMember | null
  /** Writes another limit of output tokens into a request; absent: it is the member of `maxTokensMember`. */
  readonly withLimit?: (body: WrittenRequest, limit: number) => WrittenRequest
  /** Headers of a caller that go on, beside those that every request has. */
  readonly headers: readonly string[]
  /** The tokenizer by which unreported usage is estimated: that of the API's own provider. */
  readonly tokenizer: Tokenizer
  /** The usage of a stream must be requested. */
  readonly asksUsage: boolean
  readonly events: Events
  /** Returns what is wrong with a whole response, or null if the parts on which reviews depend are valid. */
  answerFault(value: JsonObject): ShapeFault
  /** Returns the usage that a frame reports, merged with that of earlier frames; null if it reports none. */
  report(frame: Frame, before: Report | null): Report | null
  /** Returns true for a frame that was sent only because the gateway requested it. */
  hides(frame: Frame, request: ModelRequest): boolean
  /** Members of a response that hold or quote generated content. */
  readonly generated: readonly string[]
  /** Members of it with encoded content, which is not text; absent: none. */
  readonly encoded?: readonly string[]
  /** Header in which clients look for the id of a request. */
  readonly idHeader: 'x-request-id' | 'request-id'
  /** The error object, with plat's code. */
  errorBody(error: DialectError): object
  /** An error as the last event of a stream. */
  errorEvent(json: string): string
}

/** Properties of a request whose model generates no text: its tokens are at most its bytes. `model`: null unless it is a string. */
export function inputOnly(model: unknown, bytes: Uint8Array): DialectRequest {
  return {
    model: typeof model === 'string' ? model : null,
    stream: false,
    usageAsked: false,
    maxTokens: 0,
    maxTokensMember: null,
    choices: 1,
    inputTokensAtMost: bytes.byteLength,
    bounded: true,
  }
}

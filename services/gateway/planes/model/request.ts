import { JsonError, MESSAGE_LIMITS, parseStrict } from '@plat/core'
import { type Body, type Denial, deny } from '../../call/index.ts'
import { isObject, type JsonObject } from '../wire/json.ts'
import type { Dialect } from './dialects/dialect.ts'
import { isOpenEnded, optionsOf } from './dialects/priced.ts'
import { withMember } from './members.ts'

/** How callers name the limit of what is generated; reasoning models take the second, `responses` the third. */
export type MaxTokensMember = 'max_tokens' | 'max_completion_tokens' | 'max_output_tokens'

/** What the gateway has to know of a request; everything else passes unread. */
export interface ModelRequest {
  /** As the caller named it; null: the route has to say. */
  readonly model: string | null
  readonly stream: boolean
  /** The caller asked for the usage chunk of a stream. */
  readonly usageAsked: boolean
  /** Tokens that each choice may have; null: the caller set no limit. */
  readonly maxTokens: number | null
  /** Where the caller wrote it; null: nowhere. */
  readonly maxTokensMember: MaxTokensMember | null
  /** `n`: each choice is generated, and paid, on its own. */
  readonly choices: number
  /**
   * What the prompt can have at most, in tokens: its bytes. No tokenizer makes more tokens of a text than it has bytes, and the JSON
   * around a message is longer than what a chat template puts there.
   */
  readonly inputTokensAtMost: number
  /** False: images, audio, files, predicted output, or tools that run at the provider: the bytes bound none of them. */
  readonly bounded: boolean
  /** What the caller selects beyond the plain prices, as price tables name it: `service_tier=priority`. */
  readonly options: readonly string[]
}

/** What a dialect reads of its requests. */
export type DialectRequest = Omit<ModelRequest, 'options'>

/** A request whose bytes passed the strict scanner. */
export class ModelBody implements Body {
  readonly bytes: Uint8Array
  readonly value: JsonObject
  readonly request: ModelRequest
  readonly dialect: Dialect
  readonly maxTokens: number | null

  constructor(parts: Pick<ModelBody, 'bytes' | 'value' | 'request' | 'dialect'>, maxTokens: number | null = null) {
    this.bytes = parts.bytes
    this.value = parts.value
    this.request = parts.request
    this.dialect = parts.dialect
    this.maxTokens = maxTokens
  }

  get args(): Uint8Array {
    return this.bytes
  }
}

/** Reads a request; a refusal names the member to mend in `data.param`. */
export function readModelBody(bytes: Uint8Array, dialect: Dialect): ModelBody | Denial {
  let value: unknown
  try {
    value = parseStrict(bytes, MESSAGE_LIMITS)
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    return deny('invalid_request', `the body is not strict JSON: ${error.message}`)
  }
  if (!isObject(value)) return deny('invalid_request', 'the body is no JSON object')
  const fault = dialect.fault(value)
  if (fault !== null) return fault
  const read = dialect.request(bytes, value)
  const request = { ...read, bounded: read.bounded && !isOpenEnded(value), options: optionsOf(value) }
  return new ModelBody({ bytes, value, request, dialect })
}

/**
 * The same request with another limit of output tokens: written where the caller wrote one, else as the model takes it. Every
 * other byte stays as it was.
 */
export function withMaxTokens(body: ModelBody, maxTokens: number, reasoning: boolean): ModelBody {
  const { dialect } = body
  const name = body.request.maxTokensMember ?? dialect.maxTokensMember(reasoning)
  if (name === null) return body
  const request = { ...body.request, maxTokens, maxTokensMember: name }
  const value = { ...body.value, [name]: maxTokens }
  const bytes = withMember(body, name, String(maxTokens))
  return new ModelBody({ bytes, value, request, dialect }, maxTokens)
}

/** Returns the request for the provider, with the model that the route chose; a stream also asks for its usage. */
export function upstreamBody(body: ModelBody, model: string | null): Uint8Array {
  let { bytes } = body
  const { value, request, dialect } = body
  if (model !== null && model !== request.model) bytes = withMember(body, 'model', JSON.stringify(model))
  if (!request.stream || request.usageAsked || !dialect.asksUsage) return bytes
  const { stream_options: options } = value
  const wish = { ...(isObject(options) ? options : null), include_usage: true }
  return withMember({ bytes, value }, 'stream_options', JSON.stringify(wish))
}

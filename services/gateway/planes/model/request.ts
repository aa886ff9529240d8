import { JsonError, MESSAGE_LIMITS, parseStrict } from '@plat/core'
import { type Body, type Denial, deny } from '../../call/index.ts'
import { isObject, type JsonObject } from '../wire/json.ts'
import type { Dialect } from './dialects/dialect.ts'
import { isOpenEnded, optionsOf } from './dialects/priced.ts'
import { withMember } from './members.ts'

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
  /** Options of the request that change its price, by their names in price tables: `service_tier=priority`. */
  readonly options: readonly string[]
}

/** The properties of a request that its dialect reads. */
export type DialectRequest = Omit<ModelRequest, 'options'>

/** A request that passed the strict JSON scanner. */
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

/** Reads a request. A denial names the invalid member in `data.param`. */
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
 * Returns the request with another limit of output tokens, in the caller's member if there is one, otherwise in the one that the model
 * accepts. All other bytes are unchanged.
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

/** Returns the request for the provider, with the model that the route chose; a stream also requests its usage. */
export function upstreamBody(body: ModelBody, model: string | null): Uint8Array {
  let { bytes } = body
  const { value, request, dialect } = body
  if (model !== null && model !== request.model) bytes = withMember(body, 'model', JSON.stringify(model))
  if (!request.stream || request.usageAsked || !dialect.asksUsage) return bytes
  const { stream_options: options } = value
  const wish = { ...(isObject(options) ? options : null), include_usage: true }
  return withMember({ bytes, value }, 'stream_options', JSON.stringify(wish))
}

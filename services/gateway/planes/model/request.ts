import { isObject, JsonError, type JsonObject, MESSAGE_LIMITS, parseStrict } from '@plat/core'
import { type Body, type Denial, deny } from '../../call/index.ts'
import type { Dialect, ModelRequest } from './dialects/dialect.ts'
import { withoutImages } from './dialects/images.ts'
import { isPlainInput } from './dialects/plain-input.ts'
import { openEndOf, optionsOf } from './dialects/priced.ts'
import { withMember } from './members.ts'

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
  if (!isObject(value)) return deny('invalid_request', 'the body is not a JSON object')
  const fault = dialect.fault(value)
  if (fault !== null) return fault
  const read = dialect.request(bytes, value)
  const open = openEndOf(value)
  const bounded = read.bounded && open === null
  const openEnd = open ?? (bounded || isPlainInput(value) ? null : OTHER_INPUT)
  const images = bounded || openEnd !== null ? null : imagesOf(bytes, value, dialect)
  const request = { ...read, bounded, images, openEnd, options: optionsOf(value) }
  return new ModelBody({ bytes, value, request, dialect })
}

/** Input whose tokens have other prices than those of text. */
const OTHER_INPUT = 'sound, video, predicted output or a stored prompt'

/** Returns the number of images, or null if the bytes of the request do not bound the rest of it. */
function imagesOf(bytes: Uint8Array, value: JsonObject, dialect: Dialect): number | null {
  const rest = withoutImages(value)
  return dialect.request(bytes, rest.value).bounded ? rest.images : null
}

/** Returns a request whose path names the model. */
export function withModel({ bytes, value, request, dialect, maxTokens }: ModelBody, model: string | null): ModelBody {
  return new ModelBody({ bytes, value, dialect, request: { ...request, model } }, maxTokens)
}

/**
 * Returns the request with another limit of output tokens, in the caller's member if there is one, otherwise in the one that the model
 * accepts. All other bytes are unchanged.
 */
export function withMaxTokens(body: ModelBody, maxTokens: number, reasoning: boolean): ModelBody {
  const { dialect } = body
  if (dialect.withLimit !== undefined) {
    const request = { ...body.request, maxTokens }
    return new ModelBody({ ...dialect.withLimit(body, maxTokens), request, dialect }, maxTokens)
  }
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
  if (model !== null && model !== request.model && dialect.modelInPath !== true)
    bytes = withMember(body, 'model', JSON.stringify(model))
  if (!request.stream || request.usageAsked || !dialect.asksUsage) return bytes
  const { stream_options: options } = value
  const wish = { ...(isObject(options) ? options : null), include_usage: true }
  return withMember({ bytes, value }, 'stream_options', JSON.stringify(wish))
}

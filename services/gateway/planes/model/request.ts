import { JsonError, parseStrict } from '@plat/core'
import { type Body, type Denial, deny } from '../../call/index.ts'
import { isObject, type JsonObject, member } from '../wire/json.ts'
import { withMember } from './members.ts'

/** How callers name the limit of what is generated; reasoning models take the second. */
export type MaxTokensMember = 'max_tokens' | 'max_completion_tokens'

/** What the gateway has to know of a chat completion; everything else passes unread. */
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
  /** False: images, audio, files or predicted output, whose tokens the bytes do not bound. */
  readonly bounded: boolean
}

/** A chat completion whose bytes passed the strict scanner. */
export class ModelBody implements Body {
  readonly bytes: Uint8Array
  readonly value: JsonObject
  readonly request: ModelRequest
  readonly maxTokens: number | null

  constructor(bytes: Uint8Array, value: JsonObject, request: ModelRequest, maxTokens: number | null = null) {
    this.bytes = bytes
    this.value = value
    this.request = request
    this.maxTokens = maxTokens
  }

  get args(): Uint8Array {
    return this.bytes
  }
}

/** Reads a chat completion; a refusal names the member to mend in `data.param`. */
export function readModelBody(bytes: Uint8Array): ModelBody | Denial {
  let value: unknown
  try {
    value = parseStrict(bytes)
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    return deny('invalid_request', `the body is not strict JSON: ${error.message}`)
  }
  if (!isObject(value)) return deny('invalid_request', 'the body is no JSON object')
  const fault = faultOf(value)
  return fault ?? new ModelBody(bytes, value, requestOf(bytes, value))
}

/**
 * The same request with another limit of output tokens: written where the caller wrote one, else as the model takes it. Every
 * other byte stays as it was.
 */
export function withMaxTokens(body: ModelBody, maxTokens: number, reasoning: boolean): ModelBody {
  const name = body.request.maxTokensMember ?? (reasoning ? 'max_completion_tokens' : 'max_tokens')
  const request = { ...body.request, maxTokens, maxTokensMember: name }
  const value = { ...body.value, [name]: maxTokens }
  return new ModelBody(withMember(body, name, String(maxTokens)), value, request, maxTokens)
}

/** Most choices that one call may ask for, as OpenAI limits it. */
const MAX_CHOICES = 128

function faultOf(value: JsonObject): Denial | null {
  const { model, stream, n } = value
  if (isSet(model) && (typeof model !== 'string' || model === '')) return wrong('model', 'must be a string')
  if (isSet(stream) && typeof stream !== 'boolean') return wrong('stream', 'must be true or false')
  if (isSet(n) && !isCount(n, MAX_CHOICES)) return wrong('n', `must be a whole number from 1 to ${MAX_CHOICES}`)
  for (const name of ['max_tokens', 'max_completion_tokens']) {
    const limit = value[name]
    if (isSet(limit) && !isCount(limit, Number.MAX_SAFE_INTEGER)) return wrong(name, 'must be a whole number above 0')
  }
  if (isSet(value.max_tokens) && isSet(value.max_completion_tokens))
    return wrong('max_tokens', 'and max_completion_tokens exclude one another')
  if (isSet(value.stream_options) && !isObject(value.stream_options))
    return wrong('stream_options', 'must be an object')
  return null
}

function wrong(param: string, why: string): Denial {
  return deny('invalid_request', `${param} ${why}`, { data: { param } })
}

/** Providers read null as absent. */
function isSet(value: unknown): boolean {
  return value !== undefined && value !== null
}

function isCount(value: unknown, most: number): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 1 && value <= most
}

function requestOf(bytes: Uint8Array, value: JsonObject): ModelRequest {
  const maxTokensMember = isSet(value.max_completion_tokens)
    ? 'max_completion_tokens'
    : isSet(value.max_tokens)
      ? 'max_tokens'
      : null
  const maxTokens = maxTokensMember === null ? null : value[maxTokensMember]
  return {
    model: typeof value.model === 'string' ? value.model : null,
    stream: value.stream === true,
    usageAsked: member(value.stream_options, 'include_usage') === true,
    maxTokens: typeof maxTokens === 'number' ? maxTokens : null,
    maxTokensMember,
    choices: typeof value.n === 'number' ? value.n : 1,
    inputTokensAtMost: bytes.byteLength,
    bounded: isBounded(value),
  }
}

function isBounded(value: JsonObject): boolean {
  if (isSet(value.prediction) || isSet(value.audio)) return false
  return !Array.isArray(value.messages) || value.messages.every(isText)
}

/** Whether a message holds text alone. */
function isText(message: unknown): boolean {
  if (isSet(member(message, 'audio'))) return false
  const content = member(message, 'content')
  return !Array.isArray(content) || content.every((part) => TEXT_PARTS.has(member(part, 'type')))
}

const TEXT_PARTS: ReadonlySet<unknown> = new Set(['text', 'refusal'])

import type { JsonObject } from '@plat/core'

/** An error as OpenAI's API answers it. */
export interface ApiError {
  readonly status: number
  readonly message: string
  readonly type: string
  readonly param: string | null
  readonly code: string | null
}

/** Roles that chat messages can have. */
const ROLES = new Set(['system', 'developer', 'user', 'assistant', 'tool', 'function'])

/** Models that limit their output by `max_completion_tokens` alone. */
const REASONING = /^(?:o[1-9]|gpt-5)/

/** Returns the error of the real API for a chat completion; null when it is accepted. */
export function judge(body: JsonObject): ApiError | null {
  if (typeof body.model !== 'string') return invalid('you must provide a model parameter', null)
  if (!Array.isArray(body.messages)) return invalid("Missing required parameter: 'messages'.", 'messages')
  for (const [index, message] of body.messages.entries()) {
    const role: unknown = typeof message === 'object' && message !== null ? message.role : undefined
    if (!ROLES.has(String(role))) return invalid(`Invalid value: '${String(role)}'.`, `messages[${index}].role`)
  }
  return judgeLimits(body, body.model) ?? judgeStream(body)
}

function judgeLimits(body: JsonObject, model: string): ApiError | null {
  const [old, current] = [body.max_tokens, body.max_completion_tokens]
  if (isSet(old) && isSet(current))
    return invalid("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.", null)
  if (isSet(old) && REASONING.test(model))
    return invalid(
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
      'max_tokens',
      'unsupported_parameter',
    )
  for (const [name, limit] of [
    ['max_tokens', old],
    ['max_completion_tokens', current],
  ] as const) {
    if (isSet(limit) && !(Number.isSafeInteger(limit) && Number(limit) >= 1))
      return invalid(`Invalid '${name}': integer below minimum value.`, name, 'integer_below_min_value')
  }
  return null
}

function judgeStream(body: JsonObject): ApiError | null {
  const options = body.stream_options
  if (isSet(options) && body.stream !== true)
    return invalid("The 'stream_options' parameter is only allowed when 'stream' is enabled.", 'stream_options')
  return null
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null
}

function invalid(message: string, param: string | null, code: string | null = null): ApiError {
  return { status: 400, message, type: 'invalid_request_error', param, code }
}

/** The refusal of a wrong key, which quotes a part of it as the real one does. */
export function wrongKey(key: string): ApiError {
  const message = `Incorrect API key provided: ${key.slice(0, 4)}****${key.slice(-4)}.`
  return { status: 401, message, type: 'invalid_request_error', param: null, code: 'invalid_api_key' }
}

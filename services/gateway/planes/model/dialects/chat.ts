import { type JsonObject, member } from '@plat/core'
import { commonFault, isCount, isSet, limitFault, objectFault, wrong } from './checks.ts'
import type { Dialect } from './dialect.ts'
import { openai } from './openai.ts'

/** Maximum number of choices of one call, as in OpenAI's API. */
const MAX_CHOICES = 128

/** `chat/completions` of OpenAI's API. */
export const chat: Dialect = {
  ...openai,
  method: 'chat/completions',
  operation: 'model.generate',
  fault(value) {
    if (isSet(value.n) && !isCount(value.n, MAX_CHOICES))
      return commonFault(value) ?? wrong('n', `must be a whole number from 1 to ${MAX_CHOICES}`)
    if (isSet(value.max_tokens) && isSet(value.max_completion_tokens))
      return wrong('max_tokens', 'and max_completion_tokens exclude one another')
    return (
      commonFault(value) ??
      limitFault(value, 'max_tokens') ??
      limitFault(value, 'max_completion_tokens') ??
      objectFault(value, 'stream_options')
    )
  },
  request(bytes, value) {
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
  },
  maxTokensMember: (reasoning) => (reasoning ? 'max_completion_tokens' : 'max_tokens'),
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
